package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/internal/doctest"
	"clove.run/clove/oci"
)

const manualPage = "integration/package/clove-oci.8"

// annotationNames are those that the parser lists in its message about an unknown one.
func annotationNames(t *testing.T) []string {
	t.Helper()
	_, err := oci.Parse(map[string]string{oci.Prefix + "?": ""})
	_, list, listed := strings.Cut(describe(err), "comes one of ")
	if !listed {
		t.Fatalf("no annotations are listed: %v", err)
	}
	names := strings.Split(list, ", ")
	for i := range names {
		names[i] = oci.Prefix + names[i]
	}
	return names
}

// TestTheManualPageIsWhole: it explains every command, global flag, annotation and variable,
// and no others.
func TestTheManualPageIsWhole(t *testing.T) {
	want := map[string]bool{"--help": true, "--version": true}
	for _, f := range globalFlags() {
		want["--"+f.Names()[0]] = true
	}
	for _, c := range (&program{}).commands() {
		want[c.Name] = true
	}
	for _, name := range annotationNames(t) {
		want[name] = true
	}
	for _, name := range []string{"CLOVE_SOCKET", stateVariable, notifySocket, "LISTEN_FDS", "LISTEN_PID"} {
		want[name] = true
	}
	terms := doctest.Terms(t, manualPage)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !slices.Contains(terms, name) {
			t.Errorf("%s has no %s", manualPage, name)
		}
	}
	// The program's own name, and the two values of --log-format.
	want["clove-oci"], want["text"], want["json"] = true, true, true
	for _, term := range terms {
		if !want[term] {
			t.Errorf("%s explains %s, which is nothing of clove-oci's", manualPage, term)
		}
	}
}

// TestTheManualPageHasTheDefaults: as they are in the code.
func TestTheManualPageHasTheDefaults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(doctest.Root(t), manualPage))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(text), `\-`, "-")
	for _, value := range []string{defaultRoot, oci.RecordsDir, api.DefaultSocket, oci.RecordID} {
		if !strings.Contains(page, value) {
			t.Errorf("%s has no %s", manualPage, value)
		}
	}
}
