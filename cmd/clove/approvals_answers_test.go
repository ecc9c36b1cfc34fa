package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// Each field of a question is shown in printable ASCII, in one line of its own, and what could be taken for clove's words is
// in quotes. The control is that the attack is in the text that comes in.
func TestAQuestionHidesNothing(t *testing.T) {
	t.Parallel()
	for what, attack := range map[string]string{
		"an escape": "\x1b[2J\x1b[H", "a carriage return": "api\rok", "a line": "api\n  a yes adds nothing", "right to left": "\u202emoc.elpmaxe", "invisible": "a\u200bpi",
		"a letter that looks like a": "\u0430pi.example.com", "not UTF-8": "a\xffb", "a window's title": "\x1b]0;x\a", "a BOM": "\ufeffapi",
	} {
		a := api.Approval{ID: "0123456789abcdef", State: api.ApprovalWaits, Kind: api.ApproveNet, Run: "fedcba9876543210", Agent: attack, Namespace: attack, What: attack, Rule: attack,
			Expires: time.Unix(0, 0), Answers: []api.ApprovalAnswer{{Reason: attack}}}
		for _, line := range questionLines(a) {
			text := fmt.Sprint(line)
			if strings.Contains(text, attack) || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Errorf("%s: %q", what, text)
			}
		}
		if cell := forms()["ascii"](attack); strings.ContainsFunc(cell, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%s in a table: %q", what, cell)
		}
	}
	if latin, cyrillic := quoted("api.example.com"), quoted("\u0430pi.example.com"); latin != "api.example.com" || cyrillic == latin || !strings.Contains(cyrillic, `\u0430`) {
		t.Errorf("%s and %s look equal", latin, cyrillic)
	}
	if own := quoted("connect to api:80 (root has allowed it)"); own[0] != '"' {
		t.Errorf("it looks like clove's words: %s", own)
	}
	if usual := quoted("connect to api.example.com:80"); usual != "connect to api.example.com:80" {
		t.Errorf("control: %s", usual)
	}
}

// A rule goes into the list of a document, and each other line stays. A document without such a list is refused.
func TestARuleForEver(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nname: own\nwiden: {network: why}\n"
	for what, network := range map[string]string{
		"lines":   "network:\n  mode: allowlist # kept\n  allow:\n    - a.example.com\nlimits:\n  pids: 7\n",
		"one":     "network:\n  mode: allowlist\n  allow: [a.example.com]\n",
		"none":    "network:\n  mode: allowlist\n  allow: []\n",
		"no deep": "network:\n  mode: allowlist\n  allow:\n  - a.example.com\n",
	} {
		text := head + network
		got, has, err := withRule([]byte(text), "b.example.com:443")
		if err != nil || has {
			t.Errorf("%s: %v", what, err)
			continue
		}
		d, err := policies.Parse(got)
		if err != nil || !slices.Contains(d.Values[settings.Allow], "b.example.com:443") || strings.Contains(text, "#") != strings.Contains(string(got), "# kept") {
			t.Errorf("%s: %s, %v", what, got, err)
		}
		if again, has, err := withRule(got, "b.example.com:443"); err != nil || !has || string(again) != string(got) {
			t.Errorf("%s twice: %v", what, err)
		}
	}
	for what, network := range map[string]string{"no list": "network:\n  mode: allowlist\n", "a flow": "network: {mode: allowlist, allow: [a.example.com]}\n", "none": ""} {
		if got, has, err := withRule([]byte(head+network), "b.example.com:443"); err == nil {
			t.Errorf("%s: %v %s", what, has, got)
		}
	}
}

// What others could have placed is not written. The control is a file of the user's own.
func TestAlwaysWritesOwnFilesAlone(t *testing.T) {
	t.Parallel()
	own := os.Geteuid()
	for what, change := range map[string]func(dir, file string) error{
		"control":          func(string, string) error { return nil },
		"none":             func(_, file string) error { return os.Remove(file) },
		"a link":           func(dir, file string) error { os.Rename(file, dir+"/other"); return os.Symlink(dir+"/other", file) },
		"a second name":    func(dir, file string) error { return os.Link(file, dir+"/other") },
		"writable":         func(_, file string) error { return os.Chmod(file, 0o666) },
		"writable folder":  func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"a directory":      func(_, file string) error { os.Remove(file); return os.Mkdir(file, 0o700) },
		"another's, by id": nil,
	} {
		config := filepath.Join(t.TempDir(), "clove")
		dir := filepath.Join(config, "policies")
		file := filepath.Join(dir, "own.yaml")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("version: 1\nname: own\nwiden: {network: why}\nnetwork:\n  mode: allowlist\n  allow: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := host.Host{UID: own, Policies: []string{dir, "/etc/clove/policies"}, Ceiling: "/etc/clove/policies"}
		if change == nil {
			h.UID++
		} else if err := change(dir, file); err != nil {
			t.Fatal(err)
		}
		a, err := alwaysIn(h, "own", "standard", "b.example.com:443")
		if (err == nil) != (what == "control" || what == "none") {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil && (a.path != file || a.made != (what == "none")) {
			t.Errorf("%s: %+v", what, a)
		}
		if text, _ := os.ReadFile(file); strings.Contains(string(text), "b.example.com") {
			t.Errorf("%s: it is written before the answer", what)
		}
	}
}

// What is suggested is what was allowed, and nothing wider; what was denied or waits is not.
func TestSuggestionsAreTheSmallestRules(t *testing.T) {
	t.Parallel()
	allowed := func(rule, name string) api.Approval {
		return api.Approval{Kind: api.ApproveNet, State: api.ApprovalAllowed, Rule: rule, Agent: name}
	}
	got := suggestions([]api.Approval{allowed("a.example.com:443", "x"), allowed("b.example.com:443", "x"), allowed("a.example.com:443", "y"), allowed("udp://9.9.9.9:53", "x"),
		{Kind: api.ApproveNet, State: api.ApprovalDenied, Rule: "no.example.com:443"}, {Kind: api.ApproveNet, State: api.ApprovalWaits, Rule: "later.example.com:443"}})
	if len(got) != 3 || got[0].Rule != "a.example.com:443" || got[0].Times != 2 || len(got[0].Agents) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, s := range got {
		if s.Risk == "" || strings.Contains(s.Rule, "*") || !strings.Contains(s.Policy, s.Rule) {
			t.Errorf("%+v", s)
		}
	}
}
