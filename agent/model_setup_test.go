package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

func setupOf(client string, grants ...string) Spec {
	s := whole()
	s.Files.Binds, s.Files.Tmpfs = nil, nil
	s.Kernel = Kernel{ModelSetup: client, Grants: grants}
	return s
}

// The file has the first model that is named, and no grant of another kind or of a pattern.
func TestModelSetupFile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ client, path, has string }{
		{"codex", ".codex/config.toml", "model = \"qwen3:8b\"\n"},
		{"codex", ".codex/config.toml", "base_url = \"http://127.0.0.1:8411/v1\"\n"},
		{"opencode", ".config/opencode/opencode.json", `"openai/qwen3:8b"`},
		{"opencode-anthropic", ".config/opencode/opencode.json", `{"anthropic": {"models": {"qwen3:8b": {}}}}`},
		{"claude-code", ".claude/settings.json", `"ANTHROPIC_MODEL": "qwen3:8b"`},
	} {
		got, err := setupOf(row.client, "tool:x", "model:gpt-*", "model:qwen3:8b:provider-tools", "model:other").ModelSetupFile()
		if err != nil || got.Path != row.path || !strings.Contains(got.Text, row.has) || strings.ContainsAny(got.Text, "<>") {
			t.Errorf("%s: %v, %s: %s", row.client, err, got.Path, got.Text)
		}
		if strings.HasSuffix(row.path, ".json") && !json.Valid([]byte(got.Text)) {
			t.Errorf("%s: %s", row.client, got.Text)
		}
	}
	if got, err := setupOf("", "model:small").ModelSetupFile(); err != nil || got.Path != "" {
		t.Errorf("none: %v, %+v", err, got)
	}
}

// The file is written in the sandbox only, and where the client looks.
func TestModelSetupRefusals(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*Spec)
		want   string // empty: it passes
	}{
		"control":              {func(*Spec) {}, ""},
		"another client":       {func(s *Spec) { s.Kernel.ModelSetup = "cursor" }, "no client whose file is known"},
		"patterns only":        {func(s *Spec) { s.Kernel.Grants = []string{"model:gpt-*", "tool:small"} }, "the run names none"},
		"the host's home":      {func(s *Spec) { s.Files.Binds = []Bind{{Source: "/srv/a", Target: "/home/agent"}} }, "written on the host"},
		"the host's directory": {func(s *Spec) { s.Files.Binds = []Bind{{Source: "/srv/a", Target: "/home/agent/.codex"}} }, "written on the host"},
		"the host's file":      {func(s *Spec) { s.Files.Binds = []Bind{{Source: "/srv/a", Target: "/home/agent/.codex/config.toml"}} }, "written on the host"},
		"another directory":    {func(s *Spec) { s.Files.Binds = []Bind{{Source: "/srv/a", Target: "/home/agent/.cod"}} }, ""},
		"another home":         {func(s *Spec) { s.Env = []string{"HOME=/tmp"} }, "HOME is"},
		"a read-only root":     {func(s *Spec) { s.Files.ReadOnly = true }, ""},
		"a read-only home":     {func(s *Spec) { s.Files.ReadOnly, s.Files.Writable = true, []string{"/tmp"} }, "the root is read-only there"},
		"a writable home":      {func(s *Spec) { s.Files.ReadOnly, s.Files.Writable = true, []string{"/home/agent"} }, ""},
		"a home in memory": {func(s *Spec) {
			s.Files = Files{ReadOnly: true, Writable: []string{"/tmp"}, Tmpfs: []Tmpfs{{Target: "/home/agent"}}}
		}, ""},
		"the home of root": {func(s *Spec) { s.Files.ReadOnly, s.User = true, User{Name: "root", Home: "/root"} }, "the root is read-only there"},
		"the same home":    {func(s *Spec) { s.Env = []string{"HOME=/home/agent"} }, ""},
	} {
		s := setupOf("codex", "model:small")
		row.change(&s)
		err := s.Validate()
		if (err == nil) != (row.want == "") || err != nil && (!strings.Contains(err.Error(), row.want) || KindOf(err) != KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f := FailureOf(setupOf("cursor", "model:small").Validate()); f.Hint != "use claude-code, codex, opencode, opencode-anthropic" {
		t.Errorf("%+v", f)
	}
}

// Variables and arguments say to a client what its file says: each client has both, and no fact is in one alone.
func TestClientsAreToldWhatTheirFilesSay(t *testing.T) {
	plain := strings.NewReplacer(`"`, "", " ", "", "{", "", "}", "", "[", "", "]", "", ",", "", ":", "", "=", "", "\n", "").Replace
	for _, name := range ModelSetups() {
		client, known := ModelClientOf(name, "small")
		file := strings.NewReplacer("<model>", "small", "<url>", ModelURL).Replace(modelSetups[name].Text)
		var facts []string
		for _, variable := range client.Env {
			key, value, _ := strings.Cut(variable, "=")
			if key != "OPENCODE_CONFIG_CONTENT" {
				value = key + value
			}
			facts = append(facts, value)
		}
		for i := 1; i < len(client.Args); i += 2 {
			facts = append(facts, client.Args[i])
		}
		for _, fact := range facts {
			if !strings.Contains(plain(file), plain(fact)) {
				t.Errorf("%s: %s is not in %s", name, fact, file)
			}
			file = strings.Replace(plain(file), plain(fact), "", 1)
		}
		if rest := strings.TrimPrefix(plain(file), "env"); !known || rest != "" {
			t.Errorf("%s: only its file says %q", name, rest)
		}
	}
}
