package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies"
)

// document writes the plan as YAML. Texts of the file are quoted, and in comments what cannot
// be printed is replaced.
func (r *reader) document() []byte {
	w := &document.Writer{}
	w.Comment("made by clove policy import from %s (%s)", r.file.Path, r.file.System)
	r.head(w)
	w.Line(0, "version: 1")
	w.Line(0, "name: %s", document.Quoted(r.file.Name))
	w.Line(0, "description: %s", document.Quoted("the settings of "+r.file.Path))
	w.Line(0, "extends: %s", policies.StandardName)
	r.widen(w)
	if r.system != "" {
		for _, text := range r.filter {
			w.Comment("%s", text)
		}
		w.Line(0, "seccomp: %s", document.Quoted(r.system))
		return w.Bytes()
	}
	r.files(w)
	r.environment(w)
	r.network(w)
	return w.Bytes()
}

func (r *reader) head(w *document.Writer) {
	for _, setting := range r.left {
		w.Comment("LEFT OUT by --skip: %s", setting)
	}
	for _, n := range r.notes {
		w.Comment("%s: %s", n.setting, n.text)
	}
	if len(r.own) > 0 {
		w.Comment("of the program itself, no sandbox holds them: %s", strings.Join(r.own, ", "))
	}
	if r.system == "" {
		if r.isWritable(agent.WorkspaceDir) {
			w.Comment("files of the workspace that %s protects by itself, such as .git/hooks, change in the copy; clove apply asks before it brings them back", r.file.System)
		}
		w.Comment("of the host, only the base system, the workspace, volumes, and an interpreter that a run needs appear inside")
	}
}

// widen gives the reasons for what the level standard does not allow.
func (r *reader) widen(w *document.Writer) {
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
	w.Line(0, "widen:")
	for _, key := range slices.Sorted(maps.Keys(reasons)) {
		settings := slices.Compact(slices.Sorted(slices.Values(reasons[key])))
		w.Line(1, "%s: %s", key, document.Quoted(fmt.Sprintf("%s of %s", strings.Join(settings, ", "), r.file.Path)))
	}
}

// keyOf is a setting without the items of its list.
func keyOf(setting string) string {
	key, _, _ := strings.Cut(setting, "=")
	return key
}

func (r *reader) files(w *document.Writer) {
	w.Line(0, "files:")
	w.Line(1, "root: %s # nothing is written but what is named here", policies.RootReadOnly)
	w.Line(1, "writable:")
	for _, place := range agent.WritablePlaces {
		if why := r.writable[place]; why != "" {
			w.Line(2, "- %s # %s", place, document.Shown(why))
		}
	}
	if len(r.volumes) == 0 {
		return
	}
	w.Line(1, "volumes:")
	for _, v := range r.volumes {
		if v.readOnly {
			w.Line(2, "- %s # %s", document.Quoted(v.path+":"+v.inside+":ro"), document.Shown(v.setting))
		} else {
			w.Line(2, "- %s # %s: the host's own directory; what is written there stays, .git and all other files in it", document.Quoted(v.path+":"+v.inside), document.Shown(v.setting))
		}
	}
}

func (r *reader) environment(w *document.Writer) {
	if len(r.env) == 0 {
		return
	}
	w.Line(0, "environment: # %s", document.Shown(r.ofEnv))
	w.Line(1, "set:")
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		w.Line(2, "%s: %s", document.Quoted(name), document.Quoted(r.env[name]))
	}
}

func (r *reader) network(w *document.Writer) {
	w.Line(0, "network:")
	if r.mode == agent.NetworkNone {
		w.Line(1, "mode: %s # nothing that is carried allows a name", r.mode)
		return
	}
	w.Line(1, "mode: %s", r.mode)
	if len(r.allow) > 0 {
		w.Line(1, "allow:")
		targets(w, r.allow)
	}
	if len(r.deny) > 0 {
		w.Line(1, "deny:")
		targets(w, r.deny)
	}
	if len(r.ports) > 0 {
		w.Line(1, "host_ports:")
		for _, p := range r.ports {
			w.Line(2, "- %d # %s", p.number, document.Shown(p.setting))
		}
	}
}

func targets(w *document.Writer, list []target) {
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
		w.Line(2, "- %s # %s", document.Quoted(t.text), document.Shown(note))
	}
}
