package rootfs

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/document"
)

// Bounds on what is parsed of an agent's files: of one, and of all of one layer.
const (
	maxManifestBytes = 1 << 20
	maxParsedBytes   = 64 << 20
)

// judge records in c, an entry of the upper directory, which consent it needs. Where there is no
// host directory below, nothing of it comes to the host.
func (p *place) judge(c *Change, name string) (err error) {
	rel := path.Join(p.rel, name)
	if c.Type == TypeDir || !p.judged {
		return nil
	}
	class, program := classify(rel, c.Type)
	switch class {
	case ClassExecutable:
		c.ExecutedBy = program
		return nil
	case ClassInstructions:
		c.Instructs = program
	}
	inModules := slices.Contains(elementsOf(rel), "node_modules")
	switch {
	// A HEAD that the agent adds is in the list itself, so only the host's must be looked for.
	case isGitConfig(rel) && p.lower != nil:
		var bare bool
		if _, bare, err = p.differ.lower.statAt(p.lower, "HEAD"); bare {
			c.ExecutedBy = "git"
		}
	case inModules:
	case strings.EqualFold(name, "package.json"):
		if p.newCommands(c.Type, rel) {
			c.ExecutedBy = "npm"
		}
	case p.isOwnDocument(c.Type, rel):
		c.ExecutedBy = "clove"
	}
	if c.Class() == "" && class != ClassOwn && !inModules {
		p.suspect(c, name)
	}
	return err
}

// isOwnDocument reports whether the file, of a name in YAML or JSON, is a policy, a manifest or a
// suite of clove's, or a description of a container that has clove's annotations. A link of such
// a name counts, as it could lead to one under any name.
func (p *place) isOwnDocument(kind FileType, rel string) bool {
	if kind != TypeFile || !isDocument(rel) {
		return kind == TypeSymlink && isDocument(rel)
	}
	text, err := p.parsed(rel)
	if err != nil {
		return err == errMuch
	}
	// Most files need no parser. Other ways to write a key have an escape, or zeros (UTF-16).
	if !bytes.Contains(text, []byte("version")) && !bytes.Contains(text, []byte("run.clove.")) && !bytes.ContainsAny(text, "\\\x00") {
		return false
	}
	o, err := document.OutlineOf(text)
	return err == nil && (o.Claims("name", "suite") || slices.ContainsFunc(o.Keys, func(key string) bool { return strings.HasPrefix(key, "run.clove.") }))
}

// isDocument reports whether the file's name is that of a text in YAML or JSON.
func isDocument(rel string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".jsonc", ".json5"}, strings.ToLower(path.Ext(rel)))
}

// errMuch: the agent left more to parse than clove does. The rest is judged as if it were
// what is looked for.
var errMuch = unix.E2BIG

// parsed reads a file of the layer that is to be parsed. The error is EFBIG for one that is too
// long, and errMuch after maxParsedBytes of all files.
func (p *place) parsed(rel string) ([]byte, error) {
	text, err := readShort(p.differ.upper, rel)
	if p.differ.parsedBytes += len(text); err == nil && p.differ.parsedBytes > maxParsedBytes {
		return nil, errMuch
	}
	return text, err
}

// readShort reads a file of at most maxManifestBytes.
func readShort(tree beneath, rel string) ([]byte, error) {
	file, err := tree.openRegular(rel)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// One byte more, to detect a file that is too long.
	text, err := io.ReadAll(io.LimitReader(file, maxManifestBytes+1))
	if err == nil && len(text) > maxManifestBytes {
		err = unix.EFBIG
	}
	return text, err
}

// newCommands reports whether the layer's package.json has commands that the host's does
// not have. A file that cannot be read counts as having some.
func (p *place) newCommands(kind FileType, rel string) bool {
	if kind != TypeFile {
		return true
	}
	text, err := p.parsed(rel)
	if err != nil {
		return true
	}
	now, err := commandsIn(text)
	if err != nil {
		return true
	}
	var before map[string]string
	if p.lower != nil {
		text, _ := readShort(*p.differ.lower, p.lowerRel(path.Base(rel)))
		before, _ = commandsIn(text) // on an error every command counts as new
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

// commandsIn reads the executed parts of a package.json, as compact JSON.
func commandsIn(text []byte) (map[string]string, error) {
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
