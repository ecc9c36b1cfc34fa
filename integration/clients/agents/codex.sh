#!/bin/sh
# Codex does a task. It takes base URL and model from its file (--model-setup), the key from the environment.
/opt/agents/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex exec --skip-git-repo-check \
	--dangerously-bypass-approvals-and-sandbox "write a greeting" </dev/null
