package kubernetes

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"clove.run/clove/agent"
)

// File is a file of the workspace.
type File struct {
	Path string // below the workspace, for example pkg/tool.py
	Text []byte
}

// MaxContentBytes is how much a ConfigMap holds, keys included
// (MaxSecretSize of the API's validation).
const MaxContentBytes = 1 << 20

// placed is a file with its key in the ConfigMap and its path inside.
type placed struct {
	key, path string
	text      []byte
}

// notInKey are the characters that a ConfigMap's key may not have; a slash is one.
var notInKey = pattern(`[^-._a-zA-Z0-9]`)

// place gives each file a key: its path, with _ for what a key may not have. Two paths
// may lead to one key (a/b and a_b), so later ones get a number.
func place(files []File) ([]placed, error) {
	var all []placed
	taken, total := map[string]bool{}, 0
	for _, f := range files {
		if strings.Contains(f.Path, ":") || strings.ContainsFunc(f.Path, func(c rune) bool { return c < ' ' || c == utf8.RuneError }) {
			return nil, &agent.Error{Kind: agent.KindInvalid, Step: "workspace", Message: fmt.Sprintf("a pod cannot mount a file called %q", f.Path),
				Hint: "rename it; colons, control characters and what is not UTF-8 do not go into a mount's path"}
		}
		stem := notInKey().ReplaceAllString(f.Path, "_")
		stem = stem[:min(len(stem), 200)] // a key has at most 253 characters
		key := stem
		// The API refuses the keys "." and "..", and those that begin with "..".
		for n := 2; taken[key] || key == "." || strings.HasPrefix(key, ".."); n++ {
			key = strings.TrimLeft(stem, ".") + "." + strconv.Itoa(n)
		}
		taken[key] = true
		total += len(key) + len(f.Text)
		all = append(all, placed{key, path.Join(agent.WorkspaceDir, f.Path), f.Text})
	}
	if total > MaxContentBytes {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "workspace", Message: fmt.Sprintf("its files have %d bytes, and a ConfigMap holds %d", total, MaxContentBytes),
			Hint: "build an image that holds them: clove render kubernetes --image IMAGE -- COMMAND"}
	}
	return all, nil
}

// fill puts text into data, where people can read it, and the rest into binaryData,
// which is base64: data must be UTF-8.
func (m *configMap) fill(files []placed) {
	m.Data, m.BinaryData = map[string]string{}, map[string][]byte{}
	for _, f := range files {
		if utf8.Valid(f.text) {
			m.Data[f.key] = string(f.text)
		} else {
			m.BinaryData[f.key] = f.text
		}
	}
}
