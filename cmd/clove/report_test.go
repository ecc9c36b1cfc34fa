package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

func reported(t *testing.T, asJSON bool, err error) string {
	t.Helper()
	f, ferr := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if ferr != nil {
		t.Fatal(ferr)
	}
	defer f.Close()
	p := screen{err: f, json: asJSON}
	p.report(err)
	text, ferr := os.ReadFile(f.Name())
	if ferr != nil {
		t.Fatal(ferr)
	}
	return string(text)
}

func TestReport(t *testing.T) {
	full := &agent.Error{Step: "create", Message: "failed", Hint: "try again", Err: fmt.Errorf("cannot open x: %w", unix.ENOENT)}
	for _, c := range []struct {
		json bool
		err  error
		want string
	}{
		{false, errors.New("plain"), "clove: plain\n"},
		{false, full, "clove: create: failed: cannot open x: no such file or directory\nhint: try again\n"},
		{false, fmt.Errorf("around: %w", full), "clove: create: failed: cannot open x: no such file or directory\nhint: try again\n"},
		{false, &fs.PathError{Op: "open", Path: "a\nclove: fake\x1b[0m", Err: unix.EPERM}, "clove: open a\\nclove: fake\\x1b[0m: operation not permitted\n"},
		{true, full, `{"error":{"step":"create","message":"failed: cannot open x: no such file or directory","errno":"no such file or directory","hint":"try again","code":-32603,"word":"internal"}}` + "\n"},
		{true, api.Failure(api.CodeBudget, "", "too little").By("budget", "budget:0 tokens"), `{"error":{"step":"budget","message":"too little","hint":"clove budget raise gives more","code":-32011,"word":"budget","rule":"budget:0 tokens"}}` + "\n"},
	} {
		if got := reported(t, c.json, c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestColours(t *testing.T) {
	for _, c := range []struct{ variable, want string }{
		{"", "\x1b[31mclove:\x1b[0m no\r\n"},
		{"1", "clove: no\r\n"},
	} {
		t.Setenv("NO_COLOR", c.variable)
		master, slave := pseudoTerminal(t)
		p := screen{err: slave}
		p.report(errors.New("no"))
		buffer := make([]byte, 100)
		n, err := io.ReadAtLeast(master, buffer, len(c.want)) // a terminal gives what has come
		if got := string(buffer[:n]); err != nil || got != c.want {
			t.Errorf("NO_COLOR=%q: %q, %v", c.variable, got, err)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain äöü 日本": "plain äöü 日本",
		"a\x1b[2Jb":    `a\x1b[2Jb`,
		"a\r\n\tb":     `a\r\n\tb`,
		"a\u202eb":     `a\u202eb`, // reverses the direction of writing
		"a\xffb":       "a\ufffdb",
		"'\"\\":        "'\"\\",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
