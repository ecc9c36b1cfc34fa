#!/bin/sh
# Codex does a task with the model that is named. It takes its base URL from its file only.
mkdir -p ~/.codex
cat >~/.codex/config.toml <<FILE
model = "$1"
model_provider = "clove"
web_search = "disabled"

[model_providers.clove]
name = "clove"
base_url = "$OPENAI_BASE_URL"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
FILE
/opt/agents/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex exec --skip-git-repo-check \
	--dangerously-bypass-approvals-and-sandbox "write a greeting" </dev/null
