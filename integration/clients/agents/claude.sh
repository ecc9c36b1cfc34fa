#!/bin/sh
# Claude Code does a task with the model that is named. Base URL and key are in the environment.
export ANTHROPIC_MODEL="$1" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
/opt/agents/@anthropic-ai/claude-code-linux-x64/claude -p --permission-mode acceptEdits "write a greeting" </dev/null
