package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A mistake is one error with what to do, before anything is started: no cloved runs here.
func TestMCPRefuses(t *testing.T) {
	for line, says := range map[string][2]string{
		"mcp x":                         {"it takes no arguments", "clove mcp --help"},
		"mcp --memory 1X":               {"1X", "hint: "},
		"mcp --workspace none":          {"none", "hint: "},
		"mcp --policy none":             {"none", "hint: "},
		"mcp --network moon":            {"moon", "hint: "},
		"mcp --memory=":                 {"empty", "hint: "},
		"mcp --scope user":              {"it is of another verb", "clove mcp --help"},
		"mcp --port 80":                 {"it is of another verb", ""},
		"mcp serve x":                   {"it takes no arguments", ""},
		"mcp serve --port x":            {"is no port", "65535"},
		"mcp serve --new":               {"it is of another verb", ""},
		"mcp token x":                   {"it takes no arguments", ""},
		"mcp token --memory 1G":         {"it is of another verb", ""},
		"mcp token":                     {"HOME is not set", ""},
		"mcp serve":                     {"cloved does not run", ""},
		"mcp -d":                        {"-d", ""},
		"mcp --name x":                  {"--name", ""},
		"mcp":                           {"cloved does not run", "start it"},
		"mcp install":                   {"no client is named", "claude-code, codex, opencode"},
		"mcp install emacs":             {`no client "emacs"`, "claude-code"},
		"mcp install codex --scope all": {`no scope "all"`, "project"},
		"mcp install codex --memory 1G": {"flags of the server come last", "-- --memory VALUE"},
		"mcp install codex":             {"HOME is not set", "--scope project"},
		"mcp install codex --scope project -- --memory 1X":   {"1X", "hint: "},
		"mcp install codex --scope project -- sleep":         {"it takes no arguments", ""},
		"mcp install codex --scope project -- --bogus":       {"--bogus", ""},
		"mcp install codex --scope project":                  {"no terminal to ask on", "--yes"},
		"mcp uninstall codex --scope project":                {"has no server clove", "--scope user"},
		"mcp uninstall codex --scope project -- --memory 1G": {"it takes one client", ""},
		"mcp instal codex":                                   {"it takes no arguments", ""},
	} {
		b := newBench(t)
		status, stdout, stderr := b.clove(strings.Fields(line)...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, says[0]) || !strings.Contains(stderr, says[1]) {
			t.Errorf("%s: %d, %q, %q", line, status, stdout, stderr)
		}
		if entries, err := os.ReadDir(b.host.Dir); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v, %v", line, entries, err)
		}
	}
}

// withHome gives the bench a home.
func (b *bench) withHome() (home string) {
	home = filepath.Join(b.host.Dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		b.t.Fatal(err)
	}
	b.setenv("HOME=" + home)
	return home
}

// The change is shown, and written with what else is in the file; the second time there is nothing to do; and
// uninstall leaves the file as it was.
func TestMCPInstall(t *testing.T) {
	b := newBench(t)
	b.withHome()
	const before = "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"}\n  }\n}\n"
	file := b.file("home/.claude.json", before, 0o640)
	status, stdout, stderr := b.clove("mcp", "install", "claude-code", "--yes", "--", "--workspace", ".", "--memory", "1G")
	if status != 0 || stdout != "" || !strings.Contains(stderr, "+    \"clove\": {\n") || !strings.Contains(stderr, "is written; claude mcp list shows it") {
		t.Fatalf("%d, %q, %q", status, stdout, stderr)
	}
	for _, part := range []string{`"command": "` + b.host.Dir + `/bin/clove"`, `"mcp",`, `"--workspace",`, `"1G"`, "\"x\": {\"command\": \"y\"},\n"} {
		if !strings.Contains(b.read(file), part) {
			t.Errorf("no %q in\n%s", part, b.read(file))
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	after := b.read(file)
	if status, _, stderr := b.clove("mcp", "install", "claude-code", "--yes", "--", "--workspace", ".", "--memory", "1G"); status != 0 || !strings.Contains(stderr, "has it already") || b.read(file) != after {
		t.Errorf("again: %d, %q", status, stderr)
	}
	if status, _, stderr := b.clove("mcp", "install", "claude-code", "--yes"); status != 0 || strings.Contains(b.read(file), "1G") {
		t.Errorf("with other flags: %d, %q", status, stderr)
	}
	if status, _, stderr := b.clove("mcp", "uninstall", "claude-code", "--yes"); status != 0 || b.read(file) != before {
		t.Errorf("%d, %q\n%s", status, stderr, b.read(file))
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A project's file names clove by its path where PATH has no clove, and flags that choose another cloved go along.
func TestMCPInstallMakesTheFile(t *testing.T) {
	b := newBench(t)
	b.withHome()
	if status, _, stderr := b.clove("--run-dir", "/run/other", "mcp", "install", "--scope", "project", "codex", "-y"); status != 0 {
		t.Fatalf("%d, %q", status, stderr)
	}
	file := filepath.Join(b.host.Dir, ".codex", "config.toml")
	if got := b.read(file); !strings.Contains(got, `args = ["--run-dir", "/run/other", "mcp"]`) {
		t.Errorf("%s", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode()&0o077 != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if status, _, stderr := b.clove("mcp", "install", "opencode", "-y"); status != 0 || !strings.Contains(b.read(filepath.Join(b.host.Dir, "home/.config/opencode/opencode.json")), `"mcp"`) {
		t.Errorf("%d, %q", status, stderr)
	}
}

// A server of that name that is another program, and a file that cannot be read, stay as they are.
func TestMCPInstallLeaves(t *testing.T) {
	for text, says := range map[string]string{
		`{"mcpServers":{"clove":{"command":"npx","args":["evil"]}}}`: "npx evil",
		`{"mcpServers":{"clove":{"url":"https://example.com"}}}`:     "another program",
		`{"mcpServers":`:   "repair it first",
		`{"mcpServers":3}`: "repair it first",
	} {
		for _, verb := range []string{"install", "uninstall"} {
			b := newBench(t)
			b.withHome()
			file := b.file("home/.claude.json", text, 0o600)
			if status, _, stderr := b.clove("mcp", verb, "claude-code", "--yes"); status != exitFailed || verb == "install" && !strings.Contains(stderr, says) || b.read(file) != text {
				t.Errorf("%s, %s: %d, %q", verb, text, status, stderr)
			}
		}
	}
}

// In a home a link is followed, and stays a link; in a folder, which may be another's, it is refused. The control
// for the latter is the same file without a link.
func TestMCPInstallAndLinks(t *testing.T) {
	b := newBench(t)
	b.withHome()
	real := b.file("dotfiles/claude.json", "{}\n", 0o600)
	link := b.link(real, "home/.claude.json")
	if status, _, stderr := b.clove("mcp", "install", "claude-code", "-y"); status != 0 || !strings.Contains(b.read(real), "clove") {
		t.Errorf("%d, %q", status, stderr)
	}
	if to, err := os.Readlink(link); err != nil || to != real {
		t.Errorf("%q, %v", to, err)
	}
	elsewhere := b.file("elsewhere.json", "{}\n", 0o600)
	project := b.link(elsewhere, ".mcp.json")
	status, _, stderr := b.clove("mcp", "install", "claude-code", "-y", "--scope", "project")
	if status != exitFailed || !strings.Contains(stderr, "is a link to "+elsewhere) || b.read(elsewhere) != "{}\n" {
		t.Errorf("%d, %q", status, stderr)
	}
	if err := os.Remove(project); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := b.clove("mcp", "install", "claude-code", "-y", "--scope", "project"); status != 0 {
		t.Errorf("control: %d, %q", status, stderr)
	}
	b.link(filepath.Join(b.host.Dir, "nothing"), "home/.config/opencode/opencode.json")
	if status, _, stderr := b.clove("mcp", "install", "opencode", "-y"); status != exitFailed || !strings.Contains(stderr, "leads to nothing") {
		t.Errorf("%d, %q", status, stderr)
	}
	if err := unix.Mkfifo(filepath.Join(b.host.Dir, "opencode.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := b.clove("mcp", "install", "opencode", "-y", "--scope", "project"); status != exitFailed || !strings.Contains(stderr, "no regular file") {
		t.Errorf("%d, %q", status, stderr)
	}
}

// On a terminal it asks, and a no writes nothing.
func TestMCPInstallAsks(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "n\n": false, "\n": false} {
		b := newBench(t)
		home := b.withHome()
		master, slave := pseudoTerminal(t)
		b.in = slave
		if _, err := master.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := b.clove("mcp", "install", "claude-code")
		_, err := os.Stat(filepath.Join(home, ".claude.json"))
		if (status == 0) != want || (err == nil) != want || !strings.Contains(stderr, ".claude.json? [y/N]") {
			t.Errorf("%q: %d, %v, %q", answer, status, err, stderr)
		}
	}
}

// A client that was started in a home shows no home by --workspace with a dot. The control is a folder below it.
func TestMCPShowsNoHome(t *testing.T) {
	b := newBench(t)
	home := b.withHome()
	b.host.Dir = home
	if status, _, stderr := b.clove("mcp", "--workspace", "."); status != exitFailed || !strings.Contains(stderr, "is a home or holds one") || !strings.Contains(stderr, "by its path") {
		t.Errorf("%d, %q", status, stderr)
	}
	b.host.Dir = filepath.Join(home, "project")
	if err := os.Mkdir(b.host.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, stderr := b.clove("mcp", "--workspace", "."); !strings.Contains(stderr, "cloved does not run") {
		t.Errorf("control: %q", stderr)
	}
}

// The token is made once, for its user alone; --new makes another one; a file that others could have read, or that
// is a link, is no token.
func TestMCPToken(t *testing.T) {
	b := newBench(t)
	home := b.withHome()
	_, first, _ := b.clove("mcp", "token")
	_, again, _ := b.clove("mcp", "token")
	file := filepath.Join(home, ".config/clove/mcp-token")
	info, err := os.Stat(file)
	if len(first) != 53 || first != again || err != nil || info.Mode() != 0o600 {
		t.Fatalf("%q, %q, %v, %v", first, again, info, err)
	}
	_, other, _ := b.clove("mcp", "token", "--new")
	if _, now, _ := b.clove("mcp", "token"); now != other || other == first {
		t.Errorf("%q, %q, %q", first, other, now)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status, stdout, stderr := b.clove("mcp", "token"); status != exitFailed || stdout != "" || !strings.Contains(stderr, "only you can read") || !strings.Contains(stderr, "--new") {
			t.Errorf("%d, %q, %q", status, stdout, stderr)
		}
		if err := errors.Join(os.Remove(file), os.Symlink(b.file("elsewhere", first, 0o600), file)); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, _ := b.clove("mcp", "token", "--new"); status != 0 || b.read(filepath.Join(b.host.Dir, "elsewhere")) != first {
		t.Errorf("%d, or the file behind the link has changed", status)
	}
}
