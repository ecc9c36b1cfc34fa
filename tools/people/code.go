package people

import (
	"context"

	"clove.run/clove/agent"
)

// languages are the interpreters of run_code. Code that begins with a dash is no flag of theirs.
var languages = map[string]func(code string) []string{
	"python": func(code string) []string { return []string{"python3", "-c", code} },
	"node":   func(code string) []string { return []string{"node", "--eval=" + code} },
	"bash":   func(code string) []string { return []string{"bash", "-c", "--", code} },
}

type codeArguments struct {
	place
	Language string  `json:"language"`
	Code     string  `json:"code"`
	Timeout  seconds `json:"timeout_seconds"`
}

func (b *sandbox) runCode(ctx context.Context, a codeArguments) (answer, error) {
	words, known := languages[a.Language]
	if !known {
		return answer{}, wrong("use python, node or bash", "there is no language %.32q", a.Language)
	}
	return b.exec(ctx, agent.Exec{Command: words(a.Code)}, a.Timeout, nil)
}

type commandArguments struct {
	place
	Command   string  `json:"command"`
	Directory string  `json:"directory"`
	Timeout   seconds `json:"timeout_seconds"`
}

// byShell has bash execute a text, or sh where a root has no bash.
const byShell = `if command -v bash >/dev/null 2>&1; then exec bash -c -- "$1"; fi; exec sh -c -- "$1"`

func (b *sandbox) runCommand(ctx context.Context, a commandArguments) (answer, error) {
	if a.Command == "" {
		return answer{}, wrong("write what a shell executes", "command is empty")
	}
	return b.exec(ctx, agent.Exec{Command: []string{"sh", "-c", byShell, "sh", a.Command}, Dir: a.Directory}, a.Timeout, nil)
}
