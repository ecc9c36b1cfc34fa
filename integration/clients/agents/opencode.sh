#!/bin/sh
# opencode does a task. Base URL and key are in the environment, the model is in its file (--model-setup).
/opt/agents/opencode-linux-x64/bin/opencode run "write a greeting" </dev/null
