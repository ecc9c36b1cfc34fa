#!/bin/sh
# Claude Code does a task. Base URL and key are in the environment, the model is in its file (--model-setup).
/opt/agents/@anthropic-ai/claude-code-linux-x64/claude -p --permission-mode acceptEdits "write a greeting" </dev/null
