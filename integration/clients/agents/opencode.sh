#!/bin/sh
# opencode does a task with the model that is named. Base URL and key are in the environment.
mkdir -p ~/.config/opencode
cat >~/.config/opencode/opencode.json <<FILE
{"model": "openai/$1", "small_model": "openai/$1", "provider": {"openai": {"models": {"$1": {}}}}}
FILE
/opt/agents/opencode-linux-x64/bin/opencode run "write a greeting" </dev/null
