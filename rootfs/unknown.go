package rootfs

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"clove.run/clove/internal/document"
)

// No list has every program. A new one mostly keeps what it executes in a folder of its own, whose
// name begins with a dot. So such a folder, if the host does not have it, is of the class unknown
// as a whole as soon as one file in it is a program or names commands. Which one comes first is
// not known while the layer is walked, so marks are put on the list at the end.

// newFolder notes a directory that the host does not have, if its name begins with a dot and it
// is in no other such directory. Nothing else is looked at below node_modules and in folders that
// builds fill (ClassOwn).
func (p *place) newFolder(name string) {
	rel := path.Join(p.rel, name)
	elements := elementsOf(rel)
	if !p.judged || !strings.HasPrefix(name, ".") || p.differ.dotFolder(rel) != "" || slices.Contains(elements, "node_modules") {
		return
	}
	if e := listed(elements); e == nil {
		p.differ.dotFolders[rel] = ""
	}
}

// dotFolder is the noted directory that holds rel, or is it; "" if there is none.
func (d *differ) dotFolder(rel string) string {
	if len(d.dotFolders) == 0 {
		return ""
	}
	for i := range len(rel) + 1 {
		if i == len(rel) || rel[i] == '/' {
			if _, ok := d.dotFolders[rel[:i]]; ok {
				return rel[:i]
			}
		}
	}
	return ""
}

// suspect notes that c makes its folder unknown. A link whose own name begins with a dot is
// unknown by itself, as it could lead to a folder of any name, and so is a new file of such a
// name in JSON that names commands.
func (p *place) suspect(c *Change, name string) {
	rel := path.Join(p.rel, name)
	if c.Type == TypeSymlink && strings.HasPrefix(name, ".") {
		c.Unknown = "a link in the place of a file or folder whose name begins with a dot"
		return
	}
	folder := p.differ.dotFolder(rel)
	if folder == "" && c.Kind == Added && c.Type == TypeFile && strings.HasPrefix(name, ".") && isJSON(name) && p.namesCommands(rel) {
		c.Unknown = "a new file that names commands, and its name begins with a dot"
		return
	}
	if folder == "" || p.differ.dotFolders[folder] != "" {
		return
	}
	reason := ""
	switch {
	case c.Type == TypeSymlink:
		reason = "a link"
	case c.Type == TypeFile && c.Mode&0o111 != 0:
		reason = "an executable file"
	case c.Type == TypeFile && isDocument(rel) && p.namesCommands(rel):
		reason = "a file that names commands"
	default:
		return
	}
	p.differ.dotFolders[folder] = "a new folder " + folder + " with " + reason
}

// commandWords are keys with which programs name what they execute, without - and _.
var commandWords = []string{"argv", "cmd", "command", "commands", "entrypoint", "exec", "executable", "execute", "hook", "hooks", "mcp", "mcpservers",
	"oncreate", "onopen", "onsave", "onstart", "program", "run", "runon", "script", "scripts", "shell", "bash", "powershell", "tasks"}

// namesCommands reports whether a text in JSON or YAML has a key of commandWords. One that
// cannot be read counts as having one.
func (p *place) namesCommands(rel string) bool {
	text, err := p.parsed(rel)
	// Comments in JSON would be parts of keys to a reader of YAML.
	if err != nil || isJSON(rel) && !json.Valid(text) {
		return true
	}
	o, err := document.OutlineOf(text)
	return err != nil || slices.ContainsFunc(o.Keys, func(key string) bool {
		return slices.Contains(commandWords, strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(key)))
	})
}

func isJSON(rel string) bool { return strings.HasPrefix(strings.ToLower(path.Ext(rel)), ".json") }

// markUnknown puts the class on everything in the folders that are unknown. Directories too: an
// empty one on the host would make the folder no new one the next time.
func (d *differ) markUnknown() {
	for i := range d.changes {
		c := &d.changes[i]
		if c.Kind == Deleted || c.Class() != "" {
			continue
		}
		if folder := d.dotFolder(strings.TrimPrefix(strings.TrimPrefix(c.Path, d.prefix), "/")); folder != "" {
			c.Unknown = d.dotFolders[folder]
		}
	}
}
