package monitor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
)

// of returns a container with this id below the root directory that most tests use.
func of(id string) owner { return owner{id, "/containers/" + id} }

// saying returns a container's record with this exit code.
func saying(id string, code int) ownedRecord {
	return ownedRecord{agent.Record{ID: agent.ID(id), ExitCode: code}, of(id).directory}
}

func recordIn(t *testing.T, path string) ownedRecord {
	t.Helper()
	r, err := readRecord(path)
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return r
}

// TestAnAnnotationOnlyGivesTheName: the node chooses the directory.
func TestAnAnnotationOnlyGivesTheName(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "state", "records")
	for annotation, want := range map[string]string{
		oci.RecordsDir + "/job.json":                             "job.json",
		oci.RecordsDir + "/" + oci.RecordID + ".json":            "one.json",
		oci.RecordsDir + "/a-" + oci.RecordID + "-{id}-{x}.json": "a-one-one-{x}.json",
	} {
		got, err := recordPath(directory, annotation, of("one"))
		if err != nil || got != filepath.Join(directory, want) {
			t.Errorf("%s: %s, %v", annotation, got, err)
		}
	}
	if info, err := os.Stat(directory); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := recordPath(directory, oci.RecordsDir+"/"+oci.RecordID+".json", of(strings.Repeat("x", 300))); err == nil {
		t.Error("a name that no file can have was promised")
	}
}

// TestARecordsSecondNameIsAFiles: it must be a valid file name, too: which of the two is needed
// is known only after the container's end, when the name can no longer be refused.
func TestARecordsSecondNameIsAFiles(t *testing.T) {
	directory := t.TempDir()
	const longest = 255 // NAME_MAX
	for _, id := range []string{"one", strings.Repeat("f", 64)} {
		for name, promised := range map[string]bool{
			strings.Repeat("x", longest-len(".json.")-len(id)):                  true,
			strings.Repeat("x", longest-len(".json.")-len(id)+1):                false,
			oci.RecordID + strings.Repeat("x", longest-len(".json.")-2*len(id)): true,
			oci.RecordID + strings.Repeat("x", longest-len(".json.")-len(id)):   false,
		} {
			path, err := recordPath(directory, oci.RecordsDir+"/"+name+".json", of(id))
			if promised != (err == nil) || !promised && agent.KindOf(err) != agent.KindInvalid {
				t.Errorf("%d letters, id of %d: %v", len(name), len(id), err)
			}
			if err != nil {
				continue
			}
			for _, writer := range []string{"other", id} {
				if err := writeRecord(path, saying(writer, 0)); err != nil {
					t.Errorf("what was promised cannot be written: %v", err)
				}
			}
		}
	}
}

func TestARecordReplacesOnlyItsOwn(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "job.json")
	write := func(id string, code int) {
		t.Helper()
		if err := writeRecord(path, saying(id, code)); err != nil {
			t.Fatal(err)
		}
	}
	write("one", 1)
	write("one", 2)
	if _, err := recordPath(directory, oci.RecordsDir+"/job.json", of("one")); err != nil {
		t.Errorf("its own: %v", err)
	}
	if _, err := recordPath(directory, oci.RecordsDir+"/job.json", of("two")); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("another's: %v", err)
	}
	// Both were created before the first one ended.
	write("two", 3)
	if got := recordIn(t, path); got.ID != "one" || got.ExitCode != 2 {
		t.Errorf("%+v", got)
	}
	if got := recordIn(t, filepath.Join(directory, "job.two.json")); got.ID != "two" || got.ExitCode != 3 {
		t.Errorf("%+v", got)
	}
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestTheSecondNameMayBeAnothersToo: another container may have that id, or give its record
// that name.
func TestTheSecondNameMayBeAnothersToo(t *testing.T) {
	directory := t.TempDir()
	path, second := filepath.Join(directory, "job.json"), filepath.Join(directory, "job.two.json")
	write := func(path, id string, code int) error {
		return writeRecord(path, saying(id, code))
	}
	if err := errors.Join(write(path, "one", 1), write(second, "three", 3)); err != nil {
		t.Fatal(err)
	}
	if err := write(path, "two", 2); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("it was written: %v", err)
	}
	if first, third := recordIn(t, path), recordIn(t, second); first.ExitCode != 1 || third.ExitCode != 3 {
		t.Errorf("%+v, %+v", first, third)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := recordPath(directory, oci.RecordsDir+"/job.json", of("two")); agent.KindOf(err) != agent.KindConflict || !strings.Contains(err.Error(), second) {
		t.Errorf("the second name is another's, the first is free: %v", err)
	}
	if err := write(path, "one", 4); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	for code := range 2 { // it replaces its own record under the second name, as under the first
		if err := write(path, "two", code); err != nil || recordIn(t, second).ExitCode != code {
			t.Errorf("%v, %+v", err, recordIn(t, second))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(directory, ".*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestARecordThatHasNoPlaceLeavesNothing(t *testing.T) {
	directory := t.TempDir()
	if err := writeRecord(filepath.Join(directory, "none", "job.json"), ownedRecord{}); err == nil {
		t.Error("it was written nowhere")
	}
	if err := os.Mkdir(filepath.Join(directory, "job.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(directory, "job.one.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeRecord(filepath.Join(directory, "job.json"), saying("one", 0)); err == nil {
		t.Error("it was written over a directory")
	}
	if left, _ := filepath.Glob(filepath.Join(directory, ".*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAnIdIsOnesOnlyBelowOneRoot: containerd has one root directory for each of its
// namespaces, and each may have a container with this id.
func TestAnIdIsOnesOnlyBelowOneRoot(t *testing.T) {
	directory := t.TempDir()
	path, second := filepath.Join(directory, "job.json"), filepath.Join(directory, "job.job.json")
	first, other := saying("job", 1), ownedRecord{agent.Record{ID: "job", ExitCode: 2}, "/others/job"}
	if err := writeRecord(path, first); err != nil {
		t.Fatal(err)
	}
	for whose, free := range map[owner]bool{first.owner(): true, other.owner(): false} {
		_, err := recordPath(directory, oci.RecordsDir+"/"+oci.RecordID+".json", whose)
		if free && err != nil || !free && agent.KindOf(err) != agent.KindConflict {
			t.Errorf("%+v: %v", whose, err)
		}
	}
	if _, written := writtenBefore(path, other); written {
		t.Error("the other's is taken for its own")
	}
	// Both were created before the first one ended.
	if err := writeRecord(path, other); err != nil {
		t.Fatal(err)
	}
	if got := recordIn(t, path); got.ExitCode != 1 || got.owner() != first.owner() {
		t.Errorf("the first: %+v", got)
	}
	if got := recordIn(t, second); got.ExitCode != 2 || got.owner() != other.owner() {
		t.Errorf("the other: %+v", got)
	}
}

// TestAKilledMonitorLeavesNothingForGood: the next monitor of its container takes over the
// temporary file. Another container's is not touched.
func TestAKilledMonitorLeavesNothingForGood(t *testing.T) {
	directory := t.TempDir()
	begun := func(id string) string { return filepath.Join(directory, temporaryName(of(id).directory)) }
	for _, id := range []string{"one", "two"} {
		if err := writeTemporary(begun(id), []byte(strings.Repeat("half of a record", 1000))); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeRecord(filepath.Join(directory, "job.json"), saying("one", 3)); err != nil {
		t.Fatal(err)
	}
	if got := recordIn(t, filepath.Join(directory, "job.json")); got.ExitCode != 3 {
		t.Errorf("%+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(directory, ".*")); len(left) != 1 || left[0] != begun("two") {
		t.Errorf("left: %v", left)
	}
}
