package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// A crash cuts the last line. The next result begins a line of its own, and the cut one
// counts as absent.
func TestACutLineSpoilsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, ResultsFile)
	for _, name := range []string{"a", "b"} {
		appendOne(t, dir, Result{Version: ResultVersion, Attempt: name, Outcome: Failed})
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	appendOne(t, dir, Result{Version: ResultVersion, Attempt: "c", Outcome: Passed})
	appendOne(t, dir, Result{Version: ResultVersion, Attempt: "a", Outcome: Passed})
	results, cut, err := ReadResults(dir)
	if err != nil || cut != 1 || len(results) != 2 {
		t.Fatalf("%+v, %d, %v", results, cut, err)
	}
	if results[0].Attempt != "a" || results[0].Outcome != Passed || results[1].Attempt != "c" {
		t.Errorf("%+v", results)
	}
}

func appendOne(t *testing.T, dir string, r Result) {
	t.Helper()
	file, err := OpenResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := AppendResult(file, r); err != nil {
		t.Fatal(err)
	}
}

func TestOneBenchWritesAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := OpenResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenResults(dir); agent.KindOf(err) != agent.KindBusy {
		t.Errorf("a second one: %v", err)
	}
	first.Close()
	second, err := OpenResults(dir)
	if err != nil {
		t.Fatalf("after the first one's end: %v", err)
	}
	second.Close()
}

func TestForeignFiles(t *testing.T) {
	t.Parallel()
	if _, err := ReadManifest(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no manifest.json") {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{ManifestFile: `{"version": 9}`, ResultsFile: `{"version": 9, "attempt": "a"}` + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := ReadManifest(dir)
	if _, _, err2 := ReadResults(dir); err == nil || err2 == nil {
		t.Errorf("another version: %v, %v", err, err2)
	}
}
