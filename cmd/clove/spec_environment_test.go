package main

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/resolve"
)

// variables returns an environment as a map, without CLOVE_ID and CLOVE_NAME, which differ
// each time.
func variables(spec agent.Spec) map[string]string {
	env := map[string]string{}
	for _, entry := range spec.Env {
		key, value, _ := strings.Cut(entry, "=")
		env[key] = value
	}
	return env
}

func TestNothingIsInherited(t *testing.T) {
	b := newBench(t)
	b.setenv("SECRET=1", "LD_PRELOAD=/x", "LANG=de_DE", "HOME=/root", "TERM=screen", "PYTHONPATH=/y")
	spec := b.spec("--", "true")
	want := []string{
		"CLOVE_CPUS=4", "CLOVE_ID=" + string(spec.ID), "CLOVE_MEMORY_BYTES=1073741824", "CLOVE_NAME=" + spec.Name,
		"CLOVE_WORKSPACE=/workspace", "HOME=/home/agent", "LANG=C.UTF-8", "PATH=" + resolve.PATH,
	}
	if !slices.Equal(spec.Env, want) {
		t.Errorf("got %q", spec.Env)
	}
}

func TestEnvironmentFlags(t *testing.T) {
	for _, c := range []struct{ line, key, want string }{
		{"-e A=1", "A", "1"},
		{"-e A=1,2 -e B=3", "A", "1,2"},
		{"-e A=", "A", ""},
		{"-e A=x=y", "A", "x=y"},
		{"-e A=1 --env A=2", "A", "2"},
		{"-e FROM_CALLER", "FROM_CALLER", "here"},
		{"-e HOME=/x", "HOME", "/x"},
		{"-e LANG=C", "LANG", "C"},
		{"--env-file vars", "ONE", "1"},
		{"--env-file vars", "TWO", " two # not a comment"},
		{"--env-file vars", "FROM_CALLER", "here"},
		{"--env-file vars -e ONE=flag", "ONE", "flag"},
		{"-t", "TERM", "screen"},
		{"--user root", "HOME", "/root"},
		{"--memory 64M", "CLOVE_MEMORY_BYTES", "67108864"},
		{"--cpus 0.5", "CLOVE_CPUS", "0.5"},
		{"--cpuset-cpus 1-2", "CLOVE_CPUS", "2"},
		{"--cpuset-cpus 1-2 --cpus 1.5", "CLOVE_CPUS", "1.5"},
	} {
		b := newBench(t)
		b.setenv("FROM_CALLER=here", "TERM=screen")
		b.file("vars", "\ufeff# comment\n\n  ONE=1\r\nTWO= two # not a comment\nFROM_CALLER\nUNSET\n", 0o600)
		env := variables(b.spec(append(strings.Fields(c.line), "--", "true")...))
		if got, set := env[c.key]; !set || got != c.want {
			t.Errorf("%q: %s is %q, %v; want %q", c.line, c.key, got, set, c.want)
		}
		if _, set := env["UNSET"]; set {
			t.Errorf("%q: a variable that the caller does not have was set", c.line)
		}
	}
}

func TestATerminalWithoutTERM(t *testing.T) {
	if got := variables(newBench(t).spec("-t", "--", "true"))["TERM"]; got != "xterm" {
		t.Errorf("got %q", got)
	}
}

// TestBlanksOfAValueAreItsOwn: a flag with a list must not trim values: a prompt may end with
// a blank.
func TestBlanksOfAValueAreItsOwn(t *testing.T) {
	b := newBench(t)
	if got := variables(b.spec("-e", "PS1= > ", "--", "true"))["PS1"]; got != " > " {
		t.Errorf("PS1 is %q", got)
	}
}
