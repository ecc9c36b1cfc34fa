package main

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/internal/doctest"
	"clove.run/clove/oci"
)

// TestDocumentsNameRealCommandsAndAnnotations holds what documents quote to
// what this program knows.
func TestDocumentsNameRealCommandsAndAnnotations(t *testing.T) {
	var known []string
	for _, c := range (&program{}).commands() {
		known = append(known, c.Name)
	}
	commands, annotations := 0, 0
	for _, code := range doctest.Quoted(t) {
		if words, found := strings.CutPrefix(code.Text, "clove-oci "); found {
			commands++
			if name, _, _ := strings.Cut(words, " "); !slices.Contains(known, name) {
				t.Errorf("%s:%d: there is no command %q", code.File, code.Line, name)
			}
		}
		if strings.HasPrefix(code.Text, oci.Prefix) {
			annotations++
			_, err := oci.Parse(map[string]string{code.Text: "?"})
			if err == nil || strings.Contains(err.Error(), "there is no such annotation") {
				t.Errorf("%s:%d: there is no annotation %s", code.File, code.Line, code.Text)
			}
		}
	}
	if commands == 0 || annotations == 0 {
		t.Error("no document quotes any")
	}
}
