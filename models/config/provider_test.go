package config

import (
	"testing"
	"time"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
)

// A URL has one form, in which it is compared and shown.
func TestURLsAreCanonical(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text  string
		plain bool
		want  string // empty: refused
	}{
		{"https://api.openai.com/v1", false, "https://api.openai.com/v1"},
		{"https://API.OpenAI.com/v1///", false, "https://api.openai.com/v1"},
		{"HTTPS://h", false, "https://h"},
		{"https://h:8443/Base", false, "https://h:8443/Base"},
		{"https://[2001:DB8::1]:443/v1", false, "https://[2001:db8::1]:443/v1"},
		{"http://localhost:11434/v1", true, "http://localhost:11434/v1"},
		{"http://127.0.0.2", true, "http://127.0.0.2"},
		{"http://[::1]:1/v1", true, "http://[::1]:1/v1"},
		{"http://10.1.2.3/v1", true, "http://10.1.2.3/v1"},
		{"http://172.31.0.1", true, "http://172.31.0.1"},
		{"http://[fd00::1]/v1", true, "http://[fd00::1]/v1"},
		{"http://172.32.0.1", true, ""},
		{"http://169.254.169.254/latest", true, ""}, // a metadata service
		{"http://0.0.0.0/v1", true, ""},
		{"http://[::ffff:8.8.8.8]", true, ""},
		{"http://localhost.evil.org", true, ""},
		{"http://127.1/v1", true, ""}, // a name to us, an address to others
		{"https://", false, ""},
		{"https://:443/v1", false, ""},
		{"https:/h/v1", false, ""},
		{"//h/v1", false, ""},
		{"h/v1", false, ""},
		{"https://h\n/v1", false, ""},
		{"https://h/v1?key=x", false, ""},
		{"https://h/v1#x", false, ""},
		{"https://user@h/v1", false, ""},
		{"unix:///run/x.sock", false, ""},
	} {
		got, err := checkURL("url", row.text, row.plain)
		if got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v", row.text, got, err)
		}
		if again, err := checkURL("url", got, row.plain); got != "" && (again != got || err != nil) {
			t.Errorf("%s: first %q, then %q", row.text, got, again)
		}
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	c := parsed(t, `
providers:
  nobody: {script: /x}
  users: {script: /x, users: [5, "6"]}
  groups: {script: /x, groups: [7, root]}
  all: {script: /x, users: ["*"], groups: [7]}
`)
	for _, row := range []struct {
		uid     uint32
		groups  []uint32
		allowed string
	}{
		{0, nil, "nobody users groups all"},
		{5, nil, "users all"},
		{6, []uint32{6}, "users all"},
		{8, []uint32{1, 7}, "groups all"},
		{8, []uint32{0}, "groups all"},
		{7, nil, "all"},
	} {
		got := ""
		for _, name := range []string{"nobody", "users", "groups", "all"} {
			if c.Providers[name].Allows(row.uid, row.groups) {
				got += name + " "
			}
		}
		if got != row.allowed+" " {
			t.Errorf("user %d with %v: %s", row.uid, row.groups, got)
		}
	}
}

// What a Config hands out belongs to the caller.
func TestResultsAreTheCallers(t *testing.T) {
	t.Parallel()
	c := parsed(t, example)
	p := c.Providers["openai"]
	p.Budget(1000)[0] = budget.Limit{}
	p.Budget(1)[0] = budget.Limit{}
	c.Prices()[0] = nil
	targets, err := c.Resolve("coder", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	targets[0] = Target{}
	if again, err := c.Resolve("coder", 0, nil); err != nil || again[0].Provider == nil || p.Budget(1000)[0].Granted == 0 || p.Budget(1)[0].Granted == 0 || c.Prices()[0] == nil {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestSpeaks(t *testing.T) {
	t.Parallel()
	c := parsed(t, example)
	for name, want := range map[string][2]bool{"openai": {true, false}, "claude": {false, true}, "demo": {true, true}, Echo: {true, true}, Scripted: {true, true}} {
		p := c.Providers[name]
		if got := [2]bool{p.Speaks(models.OpenAIChat), p.Speaks(models.AnthropicMessages)}; got != want || p.Name != name {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Times that are left out have a default, also beside others.
func TestTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Timeouts{
		"":                                     defaultTimeouts,
		"{}":                                   defaultTimeouts,
		"{between: 1500ms}":                    {First: 5 * time.Minute, Between: 1500 * time.Millisecond, Total: time.Hour},
		"{first: 1m, total: 2m}":               {First: time.Minute, Between: 2 * time.Minute, Total: 2 * time.Minute},
		"{first: 1h, between: 1h, total: 24h}": {First: time.Hour, Between: time.Hour, Total: 24 * time.Hour},
	} {
		if got := parsed(t, with("timeouts: "+text)).Providers["p"].Timeouts; got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
