package main

import (
	"strings"
	"testing"

	"clove.run/clove/internal/doctest"
	"clove.run/clove/oci"
)

// TestDocumentsNameRealCommandsFlagsAndAnnotations compares what documents quote with this
// program's commands, flags and annotations.
func TestDocumentsNameRealCommandsFlagsAndAnnotations(t *testing.T) {
	app := (&program{}).app()
	commands, annotations := 0, 0
	for _, code := range doctest.Quoted(t) {
		if words, found := strings.CutPrefix(code.Text, "clove-oci "); found {
			commands++
			fields := strings.Fields(words)
			command := app.Command(fields[0])
			if command == nil {
				t.Errorf("%s:%d: there is no command %q", code.File, code.Line, fields[0])
				continue
			}
			for _, word := range fields[1:] {
				if strings.HasPrefix(word, "-") && word != "--help" && find(command.Flags, word) == nil {
					t.Errorf("%s:%d: %s has no flag %s", code.File, code.Line, fields[0], word)
				}
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
