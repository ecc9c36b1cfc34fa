package rootfs

import (
	"encoding/json"
	"io"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// judge notes in c, an entry of the upper directory, which program of the host's would execute it.
func (p *place) judge(c *Change, name string) (err error) {
	rel := path.Join(p.rel, name)
	c.ExecutedBy = executedBy(rel, c.Type)
	switch {
	case c.ExecutedBy != "" || c.Type == TypeDir:
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

// newCommands tells whether the layer's package.json rel says commands that the host's does
// not. One that cannot be read may say anything.
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
		before, _ = commandsIn(*p.differ.lower, rel) // none that is known
	}
	for key, commands := range now {
		if before[key] != commands {
			return true
		}
	}
	return false
}

// commandKeys are what a package.json has executed: by installing and publishing, by git hooks that
// are there already, and by corepack.
var commandKeys = []string{"scripts", "packageManager", "husky", "lint-staged", "simple-git-hooks", "gitHooks"}

// maxManifestBytes bounds how much of an agent's file is parsed.
const maxManifestBytes = 1 << 20

// commandsIn reads the parts of a package.json that are executed, as compact JSON.
func commandsIn(tree beneath, rel string) (map[string]string, error) {
	file, err := tree.openRegular(rel)
	if err != nil {
		return nil, err
	}
	defer file.Close()
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
