package main

import (
	"strings"
	"testing"
)

// --model-setup is checked before anything is made, and is a part of the spec.
func TestModelSetup(t *testing.T) {
	b := newBench(t)
	if got := b.spec("--model", "small", "--model-setup", "codex", "--", "true"); got.Kernel.ModelSetup != "codex" {
		t.Errorf("%+v", got.Kernel)
	}
	b = newBench(t)
	dir := b.host.Dir
	for line, want := range map[string]string{
		"--model small --model-setup vim":                                     "use claude-code, codex, opencode, opencode-anthropic",
		"--model-setup codex":                                                 "add --model NAME",
		"--model gpt-* --model-setup codex":                                   "add --model NAME",
		"--model small --model-setup codex -e HOME=/tmp":                      "omit HOME",
		"--model small --model-setup codex -v " + dir + ":/home/agent/.codex": "written on the host",
	} {
		if stderr := b.refuse(append(strings.Fields(line), "--", "true")...); !strings.Contains(stderr, want) || !strings.Contains(stderr, "--model-setup") {
			t.Errorf("%s: %s", line, stderr)
		}
	}
}

// Models are refused beside a filter under which the agent could not call them, also one of a level. The
// control: with the standard filter they are not.
func TestModelsNeedSockets(t *testing.T) {
	b := newBench(t)
	for _, line := range []string{"--model small --seccomp strict", "--model small --policy sandboxed", "--model gpt-* --policy minimal", "--grant model:small --seccomp minimal"} {
		if stderr := b.refuse(append(strings.Fields(line), "--", "true")...); !strings.Contains(stderr, "lets the agent make none") || !strings.Contains(stderr, "--seccomp standard") {
			t.Errorf("%s: %s", line, stderr)
		}
	}
	b.spec("--model", "small", "--policy", "sandboxed", "--seccomp", "standard", "--", "true")
}
