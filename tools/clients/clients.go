package clients

import (
	"errors"
	"path/filepath"
	"slices"
)

// Entry is how a client starts a server.
type Entry struct {
	Command string
	Args    []string
}

// Ours reports whether the entry starts `clove mcp`.
func (e Entry) Ours() bool {
	return filepath.Base(e.Command) == "clove" && slices.Contains(e.Args, "mcp")
}

// Places are where a user's files are.
type Places struct {
	Home   string // of the user
	Dir    string // the current folder
	Lookup func(name string) (value string, found bool)
}

// variable is a folder that the environment names, or else this one below the home.
func (p Places) variable(name string, below ...string) string {
	if value, found := p.Lookup(name); found && filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(append([]string{p.Home}, below...)...)
}

// Client is a program that uses MCP servers.
type Client struct {
	Name  string // for command lines
	Title string // for people
	// user and project are the paths that the file may have. The first that exists is it; if none does, the
	// last becomes it.
	user, project func(p Places) []string
	form          form
	// Next is what the user does to see the tools.
	Next string
}

// form is how a file has its entries. name is the server's; the text may be empty.
type form interface {
	read(text []byte, name string) (e Entry, found bool, err error)
	add(text []byte, name string, e Entry) ([]byte, error) // replaces one that is there
	remove(text []byte, name string) ([]byte, error)
}

// All are the clients, by name.
func All() []Client {
	return []Client{
		{Name: "claude-code", Title: "Claude Code", form: claude{}, Next: "claude mcp list shows it",
			user: func(p Places) []string {
				return []string{filepath.Join(p.variable("CLAUDE_CONFIG_DIR"), ".claude.json")}
			},
			project: func(p Places) []string { return []string{filepath.Join(p.Dir, ".mcp.json")} }},
		{Name: "codex", Title: "Codex", form: codex{}, Next: "codex mcp list shows it",
			user: func(p Places) []string {
				return []string{filepath.Join(p.variable("CODEX_HOME", ".codex"), "config.toml")}
			},
			project: func(p Places) []string { return []string{filepath.Join(p.Dir, ".codex", "config.toml")} }},
		{Name: "opencode", Title: "opencode", form: opencode{}, Next: "opencode mcp list shows it",
			user: func(p Places) []string {
				dir := filepath.Join(p.variable("XDG_CONFIG_HOME", ".config"), "opencode")
				return []string{filepath.Join(dir, "opencode.jsonc"), filepath.Join(dir, "opencode.json")}
			},
			project: func(p Places) []string {
				return []string{filepath.Join(p.Dir, "opencode.jsonc"), filepath.Join(p.Dir, "opencode.json")}
			}},
	}
}

// Named is the client of a name.
func Named(name string) (c Client, found bool) {
	all := All()
	at := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if at < 0 {
		return c, false
	}
	return all[at], true
}

// Path is the client's file: the user's own, or that of the current folder.
func (c Client) Path(p Places, project bool, exists func(path string) bool) string {
	paths := c.user(p)
	if project {
		paths = c.project(p)
	}
	if at := slices.IndexFunc(paths, exists); at >= 0 {
		return paths[at]
	}
	return paths[len(paths)-1]
}

// ErrChanged says that the text could not be changed without a change of anything else.
var ErrChanged = errors.New("the entry cannot be changed without the rest of the file")

// Read finds a server's entry. An error says that the text is not one that the client could read.
func (c Client) Read(text []byte, name string) (e Entry, found bool, err error) {
	return c.form.read(text, name)
}

// Add returns the text with an entry, which replaces one of that name.
func (c Client) Add(text []byte, name string, e Entry) ([]byte, error) {
	return c.form.add(text, name, e)
}

// Remove returns the text without an entry.
func (c Client) Remove(text []byte, name string) ([]byte, error) { return c.form.remove(text, name) }
