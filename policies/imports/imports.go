package imports

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// System is where settings come from.
type System string

// The systems whose settings are read.
const (
	DockerSeccomp  System = "docker-seccomp"
	SandboxRuntime System = "sandbox-runtime"
	ClaudeCode     System = "claude-code"
	Codex          System = "codex"
)

// Systems are all of them.
var Systems = []System{DockerSeccomp, SandboxRuntime, ClaudeCode, Codex}

// Known reports whether it is one of Systems.
func (s System) Known() bool { return slices.Contains(Systems, s) }

// MostBytes bounds a file of settings: docker's filters may be as large.
const MostBytes = 1 << 20

// File is what a document is made from.
type File struct {
	Text   []byte
	Path   string   // absolute; comments name it, and a filter of system calls stays there
	System System   // empty: recognised by the content
	Name   string   // of the document
	Home   string   // the caller's, absolute: ~ in a path; empty: such a path cannot be shown
	Skip   []string // settings to leave out, by the names that errors have
}

// Import returns a document in the format of policies.Document. An error is an agent.Error of
// KindInvalid; if settings cannot be carried, it names all of them.
func Import(f File) ([]byte, error) {
	switch {
	case len(f.Text) > MostBytes:
		return nil, invalid("name a file of settings", "it has %d bytes, and may have %d", len(f.Text), MostBytes)
	case agent.ValidateName(f.Name) != nil || slices.Contains(policies.Levels, f.Name):
		return nil, invalid("choose another one with --name: a word of letters, digits, '-', '_' and '.', and no level", "%.64q is no name for a policy", f.Name)
	case f.System != "" && !f.System.Known():
		return nil, invalid("the systems are "+joined(Systems, ", "), "there is no system %.64q", f.System)
	case !path.IsAbs(f.Path):
		return nil, invalid("name the file by its absolute path", "%.64q is not absolute", f.Path)
	}
	root, err := parse(f)
	if err != nil {
		return nil, err
	}
	if f.System == "" {
		if f.System, err = recognise(root, inTOML(f)); err != nil {
			return nil, err
		}
	}
	if f.System != DockerSeccomp && len(f.Text) > policies.MostBytes {
		return nil, invalid("name a file of settings", "it has %d bytes, and may have %d", len(f.Text), policies.MostBytes)
	}
	r := &reader{reading: reading{file: f}, plan: newPlan()}
	readers[f.System](r, root)
	if r.mistake == nil {
		r.resolve()
	}
	if err := r.problem(); err != nil {
		return nil, err
	}
	text := r.document()
	if _, err := policies.Parse(text); err != nil {
		return nil, invalid("leave some of the settings out with --skip", "the document cannot be read: %s", agent.FailureOf(err).Message)
	}
	return text, nil
}

// readers turn the settings of a system into wishes.
var readers = map[System]func(*reader, map[string]any){
	DockerSeccomp:  (*reader).docker,
	SandboxRuntime: func(r *reader, root map[string]any) { r.each("", root, runtimeRows()) },
	ClaudeCode:     (*reader).claude,
	Codex:          (*reader).codex,
}

// marks are keys at the top of a file by which a system is recognised. No key is of two
// systems that write the same language.
func marks() map[System][]string {
	return map[System][]string{
		DockerSeccomp:  {"defaultAction", "syscalls", "architectures", "archMap"},
		SandboxRuntime: slices.Collect(maps.Keys(runtimeRows())),
		ClaudeCode:     slices.Collect(maps.Keys(claudeRows())),
		Codex:          slices.Collect(maps.Keys(codexRows())),
	}
}

// recognise finds the system of a file.
func recognise(root map[string]any, toml bool) (System, error) {
	var found []System
	for system, known := range marks() {
		if toml == (system == Codex) && slices.ContainsFunc(known, func(key string) bool { return root[key] != nil }) {
			found = append(found, system)
		}
	}
	slices.Sort(found)
	hint := "name the system: --from " + joined(Systems, ", ")
	switch len(found) {
	case 0:
		return "", invalid(hint, "it has no key by which a system is recognised")
	case 1:
		return found[0], nil
	}
	return "", invalid(hint, "it may be of %s", joined(found, " or of "))
}

func joined(systems []System, between string) string {
	var names []string
	for _, s := range systems {
		names = append(names, string(s))
	}
	return strings.Join(names, between)
}

func invalid(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, values...), Hint: hint}
}
