package imports

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// document writes the plan as YAML. Texts of the file are quoted, and in comments what cannot
// be printed is replaced.
func (r *reader) document() []byte {
	w := &writer{}
	w.comment("made by clove policy import from %s (%s)", r.file.Path, r.file.System)
	r.head(w)
	w.line(0, "version: 1")
	w.line(0, "name: %s", quoted(r.file.Name))
	w.line(0, "description: %s", quoted("the settings of "+r.file.Path))
	w.line(0, "extends: %s", policies.StandardName)
	r.widen(w)
	if r.system != "" {
		for _, text := range r.filter {
			w.comment("%s", text)
		}
		w.line(0, "seccomp: %s", quoted(r.system))
		return []byte(w.text.String())
	}
	r.files(w)
	r.environment(w)
	r.network(w)
	return []byte(w.text.String())
}

func (r *reader) head(w *writer) {
	for _, setting := range r.left {
		w.comment("LEFT OUT by --skip: %s", setting)
	}
	for _, n := range r.notes {
		w.comment("%s: %s", n.setting, n.text)
	}
	if len(r.own) > 0 {
		w.comment("of the program itself, no sandbox holds them: %s", strings.Join(r.own, ", "))
	}
	if r.system == "" {
		if r.isWritable(agent.WorkspaceDir) {
			w.comment("files of the workspace that %s protects by itself, such as .git/hooks, change in the copy; clove apply asks before it brings them back", r.file.System)
		}
		w.comment("of the host, only the base system, the workspace, volumes, and an interpreter that a run needs appear inside")
	}
}

// widen gives the reasons for what the level standard does not allow.
func (r *reader) widen(w *writer) {
	reasons := map[string][]string{}
	if r.system != "" {
		reasons["seccomp"] = append(reasons["seccomp"], "the filter is that of the file")
	}
	for _, v := range r.volumes {
		reasons["files.volumes"] = append(reasons["files.volumes"], keyOf(v.setting))
	}
	if r.public != "" && r.mode == agent.NetworkPublic {
		reasons["network"] = append(reasons["network"], keyOf(r.public))
	}
	for _, t := range r.allow {
		reasons["network"] = append(reasons["network"], keyOf(t.setting))
	}
	for _, p := range r.ports {
		reasons["network"] = append(reasons["network"], keyOf(p.setting))
	}
	if len(reasons) == 0 {
		return
	}
	w.line(0, "widen:")
	for _, key := range slices.Sorted(maps.Keys(reasons)) {
		settings := slices.Compact(slices.Sorted(slices.Values(reasons[key])))
		w.line(1, "%s: %s", key, quoted(fmt.Sprintf("%s of %s", strings.Join(settings, ", "), r.file.Path)))
	}
}

// keyOf is a setting without the items of its list.
func keyOf(setting string) string {
	key, _, _ := strings.Cut(setting, "=")
	return key
}

func (r *reader) files(w *writer) {
	w.line(0, "files:")
	w.line(1, "root: %s # nothing is written but what is named here", policies.RootReadOnly)
	w.line(1, "writable:")
	for _, place := range agent.WritablePlaces {
		if why := r.writable[place]; why != "" {
			w.line(2, "- %s # %s", place, shown(why))
		}
	}
	if len(r.volumes) == 0 {
		return
	}
	w.line(1, "volumes:")
	for _, v := range r.volumes {
		if v.readOnly {
			w.line(2, "- %s # %s", quoted(v.path+":"+v.inside+":ro"), shown(v.setting))
		} else {
			w.line(2, "- %s # %s: the host's own directory; what is written there stays, .git and all other files in it", quoted(v.path+":"+v.inside), shown(v.setting))
		}
	}
}

func (r *reader) environment(w *writer) {
	if len(r.env) == 0 {
		return
	}
	w.line(0, "environment: # %s", shown(r.ofEnv))
	w.line(1, "set:")
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		w.line(2, "%s: %s", quoted(name), quoted(r.env[name]))
	}
}

func (r *reader) network(w *writer) {
	w.line(0, "network:")
	if r.mode == agent.NetworkNone {
		w.line(1, "mode: %s # nothing that is carried allows a name", r.mode)
		return
	}
	w.line(1, "mode: %s", r.mode)
	if len(r.allow) > 0 {
		w.line(1, "allow:")
		targets(w, r.allow)
	}
	if len(r.deny) > 0 {
		w.line(1, "deny:")
		targets(w, r.deny)
	}
	if len(r.ports) > 0 {
		w.line(1, "host_ports:")
		for _, p := range r.ports {
			w.line(2, "- %d # %s", p.number, shown(p.setting))
		}
	}
}

func targets(w *writer, list []target) {
	seen := map[string]bool{}
	for _, t := range list {
		if seen[t.text] {
			continue
		}
		seen[t.text] = true
		note := t.setting
		if t.note != "" {
			note += ": " + t.note
		}
		w.line(2, "- %s # %s", quoted(t.text), shown(note))
	}
}

// writer writes lines of YAML.
type writer struct{ text strings.Builder }

func (w *writer) line(depth int, format string, values ...any) {
	fmt.Fprintf(&w.text, strings.Repeat("  ", depth)+format+"\n", values...)
}

func (w *writer) comment(format string, values ...any) {
	w.text.WriteString("# " + shown(fmt.Sprintf(format, values...)) + "\n")
}

// quoted writes a text as YAML reads it back: Go's escapes are YAML's, too.
func quoted(text string) string { return strconv.QuoteToASCII(text) }

// shown is a text without anything that ends a comment or changes a terminal.
func shown(text string) string {
	return strings.Map(func(c rune) rune {
		if unprintable(c) {
			return '?'
		}
		return c
	}, text)
}

func unprintable(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }
