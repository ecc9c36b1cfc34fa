package clients

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var own = Entry{"/usr/bin/clove", []string{"mcp", "--workspace", `a "b" \ é`}}

// Files of clients with other servers, comments and layouts of their own: what is put in is what is read back, it
// is replaced where it is there, and what is taken out leaves the file as it was, byte for byte.
func TestAnEntryComesAndGoes(t *testing.T) {
	t.Parallel()
	for _, c := range All() {
		files, err := filepath.Glob(filepath.Join("testdata", c.Name, "*"))
		if err != nil || len(files) < 3 {
			t.Fatalf("%s: %d files, %v", c.Name, len(files), err)
		}
		for _, file := range files {
			t.Run(file, func(t *testing.T) {
				before, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				comesAndGoes(t, c, before)
				comesAndGoes(t, c, []byte(strings.ReplaceAll(string(before), "\n", "\r\n")))
			})
		}
	}
}

func comesAndGoes(t *testing.T, c Client, before []byte) {
	t.Helper()
	if _, found, err := c.Read(before, "clove"); err != nil || found {
		t.Fatalf("control: %t, %v", found, err)
	}
	after, err := c.Add(before, "clove", own)
	if err != nil {
		t.Fatal(err)
	}
	if e, found, err := c.Read(after, "clove"); err != nil || !found || e.Command != own.Command || !slices.Equal(e.Args, own.Args) || !e.Ours() {
		t.Errorf("%+v, %t, %v in\n%s", e, found, err, after)
	}
	keeps(t, string(before), string(after))
	other, err := c.Add(after, "clove", Entry{"clove", []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	if e, _, err := c.Read(other, "clove"); err != nil || e.Command != "clove" || !slices.Equal(e.Args, []string{"mcp"}) {
		t.Errorf("replaced: %+v, %v", e, err)
	}
	gone, err := c.Remove(after, "clove")
	if err != nil || string(gone) != string(before) {
		t.Errorf("%v\n%q\nis not\n%q\nwas\n%q", err, gone, before, after)
	}
}

// keeps checks that each byte is still there, in its order.
func keeps(t *testing.T, before, after string) {
	t.Helper()
	for i := range len(before) {
		at := strings.IndexByte(after, before[i])
		if at < 0 {
			t.Fatalf("%q is gone", before[i:])
		}
		after = after[at+1:]
	}
}

// A file that is not there, or empty, becomes one with the entry alone.
func TestAFileThatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"claude-code": "{\n  \"mcpServers\": {\n    \"clove\": {\n      \"type\": \"stdio\",\n      \"command\": \"clove\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n",
		"codex":       "[mcp_servers.clove]\ncommand = \"clove\"\nargs = [\"mcp\"]\ntool_timeout_sec = 3660\n",
		"opencode":    "{\n  \"mcp\": {\n    \"clove\": {\n      \"type\": \"local\",\n      \"command\": [\n        \"clove\",\n        \"mcp\"\n      ]\n    }\n  }\n}\n",
	} {
		c, _ := Named(name)
		for _, before := range []string{"", "\n"} {
			got, err := c.Add([]byte(before), "clove", Entry{"clove", []string{"mcp"}})
			if err != nil || strings.TrimLeft(string(got), "\n") != want {
				t.Errorf("%s: %v\n%s", name, err, got)
			}
		}
	}
}

// What a client could not read is not written either.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string][]string{
		"claude-code": {"{", "[]", `{"a":1} x`, `{"mcpServers":[]}`, `{"mcpServers":{"a":}}`, "null", `"x`, "/*", `{"a" 1}`},
		"codex":       {"[", "a = ", "[a]\nb = 1\nb = 2\n", "mcp_servers = 1\n[mcp_servers.a]\n", "a = \"\"\"", "\xff = 1"},
		"opencode":    {"{", "[]", `{"mcp":[]}`, `{"mcp":{"servers":{"a":1}`},
	} {
		c, _ := Named(name)
		for _, text := range texts {
			if got, err := c.Add([]byte(text), "clove", own); err == nil && text != "/*" {
				t.Errorf("%s: %q became\n%s", name, text, got)
			}
		}
	}
}

// Forms that cannot be edited are left as they are: the control is that they can be read.
func TestFormsThatAreLeft(t *testing.T) {
	t.Parallel()
	c, _ := Named("codex")
	for _, text := range []string{"mcp_servers = {other = {command = \"x\"}}\n", "mcp_servers = {clove = {command = \"clove\", args = [\"mcp\"]}}\n"} {
		if _, _, err := c.Read([]byte(text), "clove"); err != nil {
			t.Errorf("control: %v", err)
		}
		if got, err := c.Add([]byte(text), "clove", own); !errors.Is(err, ErrChanged) {
			t.Errorf("%v\n%s", err, got)
		}
	}
	if got, err := c.Remove([]byte("[mcp_servers]\nclove = {command = \"clove\"}\n"), "clove"); !errors.Is(err, ErrChanged) {
		t.Errorf("%v\n%s", err, got)
	}
	// Inside of a text that looks like tables.
	text := "[a]\nb = '''\n[mcp_servers.clove]\n'''\n"
	if got, err := c.Add([]byte(text), "clove", own); err != nil || !strings.HasPrefix(string(got), text) {
		t.Errorf("%v\n%s", err, got)
	}
}

// opencode's second version has a form of its own, which a file keeps.
func TestBothFormsOfOpencode(t *testing.T) {
	t.Parallel()
	c, _ := Named("opencode")
	for text, path := range map[string]string{
		`{"mcp":{"servers":{"a":{"type":"local","command":["x"]}}}}`: `"servers":{"a":{"type":"local","command":["x"]},"clove":`,
		`{"mcp":{"servers":{"type":"local","command":["x"]}}}`:       `{"mcp":{"servers":{"type":"local","command":["x"]},"clove":`,
		`{"mcp":{"servers":{}}}`:                                     `{"mcp":{"servers":{"clove":`,
	} {
		got, err := c.Add([]byte(text), "clove", own)
		if err != nil || !strings.Contains(string(got), path) {
			t.Errorf("%s: %v\n%s", text, err, got)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	set := map[string]string{}
	p := Places{"/home/a", "/work", func(name string) (string, bool) { v, found := set[name]; return v, found }}
	none := func(string) bool { return false }
	for _, row := range []struct {
		name          string
		user, project string
		variable      string
		elsewhere     string
	}{
		{"claude-code", "/home/a/.claude.json", "/work/.mcp.json", "CLAUDE_CONFIG_DIR", "/x/.claude.json"},
		{"codex", "/home/a/.codex/config.toml", "/work/.codex/config.toml", "CODEX_HOME", "/x/config.toml"},
		{"opencode", "/home/a/.config/opencode/opencode.json", "/work/opencode.json", "XDG_CONFIG_HOME", "/x/opencode/opencode.json"},
	} {
		c, _ := Named(row.name)
		if got := c.Path(p, false, none); got != row.user {
			t.Errorf("%s", got)
		}
		if got := c.Path(p, true, none); got != row.project {
			t.Errorf("%s", got)
		}
		set[row.variable] = "/x"
		if got := c.Path(p, false, none); got != row.elsewhere {
			t.Errorf("%s", got)
		}
		delete(set, row.variable)
	}
	c, _ := Named("opencode")
	if got := c.Path(p, true, func(path string) bool { return filepath.Ext(path) == ".jsonc" }); got != "/work/opencode.jsonc" {
		t.Errorf("%s", got)
	}
}

func TestOurs(t *testing.T) {
	t.Parallel()
	for _, e := range []Entry{{"clove-other", []string{"mcp"}}, {"clove", []string{"run"}}, {"npx", []string{"clove", "mcp"}}, {}} {
		if e.Ours() {
			t.Errorf("%+v", e)
		}
	}
}

// No text makes the editing fail in another way than with an error, or change what else it means.
func FuzzAdd(f *testing.F) {
	for _, c := range All() {
		files, _ := filepath.Glob(filepath.Join("testdata", c.Name, "*"))
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				f.Add(text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, c := range All() {
			after, err := c.Add(text, "clove", own)
			if err != nil {
				continue
			}
			if e, found, err := c.Read(after, "clove"); err != nil || !found || e.Command != own.Command {
				t.Errorf("%s: %q became %q: %+v, %v", c.Name, text, after, e, err)
			}
			if _, err := c.Remove(after, "clove"); err != nil && !errors.Is(err, ErrChanged) {
				t.Errorf("%s: %q: %v", c.Name, after, err)
			}
		}
	})
}
