package rootfs

import (
	"encoding/json"
	"io"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// judge records in c, an entry of the upper directory, which host program would execute it.
func (p *place) judge(c *Change, name string) (err error) {
	rel := path.Join(p.rel, name)
	c.ExecutedBy = executedBy(rel, c.Type)
	switch {
	case c.ExecutedBy != "" || c.Type == TypeDir:
	// A HEAD that the agent adds is in the tables itself, so only the host's must be looked
	// for.
	case isGitConfig(rel) && p.lower != nil:
		var bare bool
		if _, bare, err = p.differ.lower.statAt(p.lower, "HEAD"); bare {
			c.ExecutedBy = "git"
		}
	case strings.EqualFold(name, "package.json") && !strings.Contains(rel, "node_modules/"):
		if p.newCommands(c.Type, rel) {
			c.ExecutedBy = "npm"
		}
	}
	return err
}

// newCommands reports whether the layer's package.json has commands that the host's does
// not have. A file that cannot be read counts as having some.
func (p *place) newCommands(kind FileType, rel string) bool {
	if kind != TypeFile {
		return true
	}
	now, err := commandsIn(p.differ.upper, rel)
	if err != nil {
		return true
	}
	var before map[string]string
	if p.lower != nil {
		before, _ = commandsIn(*p.differ.lower, rel) // on an error every command counts as new
	}
	for key, commands := range now {
		if before[key] != commands {
			return true
		}
	}
	return false
}

// commandKeys are the parts of a package.json that are executed: by installing and
// publishing, by installed git hooks, and by corepack.
var commandKeys = []string{"scripts", "packageManager", "husky", "lint-staged", "simple-git-hooks", "gitHooks"}

// maxManifestBytes bounds how much of an agent's file is parsed.
const maxManifestBytes = 1 << 20

// commandsIn reads the executed parts of a package.json, as compact JSON.
func commandsIn(tree beneath, rel string) (map[string]string, error) {
	file, err := tree.openRegular(rel)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// One byte more, to detect a file that is too long.
	text, err := io.ReadAll(io.LimitReader(file, maxManifestBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxManifestBytes {
		return nil, unix.EFBIG
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	commands := map[string]string{}
	for _, key := range commandKeys {
		if value, ok := all[key]; ok {
			commands[key] = string(value)
		}
	}
	return commands, nil
}
