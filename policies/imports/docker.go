package imports

import (
	"strings"

	"clove.run/clove/internal/document"
	"clove.run/clove/seccomp"
)

// docker keeps the filter in its file, which the document names. Rules for processes with
// capabilities are resolved as clove resolves them: no agent has one on the host.
func (r *reader) docker(map[string]any) {
	profile, err := seccomp.Parse(r.file.Text)
	if err != nil {
		r.mistake = invalid("correct the file: clove refuses what runc would not enforce as it is written", "%s", document.Shown(err.Error()))
		return
	}
	r.system = r.file.Path
	r.filter = []string{"the file is read when a run is made: a user who may write it decides what the filter allows"}
	for _, w := range seccomp.Warnings(profile) {
		r.filter = append(r.filter, "DANGEROUS, "+w.Group+": it allows "+strings.Join(w.Calls, ", ")+"; the standard filter refuses them: "+w.Reason)
	}
}
