package store

import (
	"fmt"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// noteSpoilings break each invariant of a table once, with what Check must say of it, and of
// nothing else. The file has the note 1 of aRun, whose topic is x.
var noteSpoilings = map[string]struct {
	spoil func(*KernelTx) error
	says  string
}{
	"no JSON":        {rawNote("notes", string(aRun)+"/2", `{`), `note "00000000000000aa/2": the file is damaged`},
	"no key of it":   {rawNote("notes", "2", `{}`), `note "2": the file is damaged: "2" of notes: it has no run`},
	"of another run": {rawNote("notes", string(bRun)+"/2", `{"run":"00000000000000aa"}`), `note "00000000000000bb/2": says that it is "00000000000000aa/2"`},
	"of no run":      {rawNote("notes", "x/2", `{"run":"x"}`), `note "x/2": it is of no run`},
	"not sound":      {func(tx *KernelTx) error { return notes.Put(tx, &note{Run: bRun, ID: "2", Text: "unsound"}) }, `note "00000000000000bb/2": it is not sound`},
	"not in the index": {func(tx *KernelTx) error {
		return tx.delete([]byte("note-topics"), indexKey("x", string(aRun)+"/1"))
	}, `index note-topics: lacks "x 00000000000000aa/1"`},
	"the index alone": {rawNote("note-topics", "y\x00"+string(aRun)+"/1", ""), `index note-topics: "y\x00` + string(aRun) + `/1" is of no note`},
	"not in the sum": {func(tx *KernelTx) error {
		return firstOf(notes.Put(tx, &note{Run: bRun, ID: "2", Text: "t"}), tx.delete([]byte("note-sums"), []byte("t")))
	},
		`sum note-sums: lacks "t", of which the rows have [1 0 0]`},
	"another sum": {func(tx *KernelTx) error {
		return firstOf(notes.Put(tx, &note{Run: bRun, ID: "2", Text: "t"}), rawNote("note-sums", "t", `[2,0,0]`)(tx))
	},
		`sum note-sums: "t" has [2,0,0], the rows have [1 0 0]`},
	"a sum of nothing": {rawNote("note-sums", "y", `[1,1,0]`), `sum note-sums: "y" has [1,1,0], the rows have []`},
	"too many of a run": {func(tx *KernelTx) (err error) {
		for i := range notesOfRun + 2 {
			err = firstOf(err, rawNote("notes", fmt.Sprint(bRun, "/", i), `{"run":"00000000000000bb"}`)(tx))
		}
		return err
	}, `notes: there are more than 5 of "00000000000000bb/"`},
	"too many of a topic": {func(tx *KernelTx) (err error) {
		for i := range notesOfTopic {
			run := agent.ID(fmt.Sprintf("%016x", i))
			key := string(run) + "/1"
			err = firstOf(err, rawNote("notes", key, fmt.Sprintf(`{"run":%q,"topics":["x"]}`, run))(tx), rawNote("note-topics", "x\x00"+key, "")(tx))
		}
		return err
	}, `note-topics: there are more than 6 of "x"`},
}

func rawNote(bucket, key, value string) func(*KernelTx) error {
	return func(tx *KernelTx) error { return tx.put([]byte(bucket), []byte(key), []byte(value)) }
}

func TestATableIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range noteSpoilings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openNotes(t, kernelFile(t), notes)
			inTx(t, k, func(tx *KernelTx) error { return putNotes(tx, aRun, "1:x") })
			wantSound(t, k)
			inTx(t, k, c.spoil)
			problems, err := k.Check()
			must(t, err)
			if len(problems) != 1 || !strings.HasPrefix(problems[0], c.says) {
				t.Errorf("got %q, want one that says %q", problems, c.says)
			}
		})
	}
}

// An index that leads to no row is damage for its reader too.
func TestAnIndexThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	k := openNotes(t, kernelFile(t), notes)
	inTx(t, k, rawNote("note-topics", "y\x00nothing", ""))
	err := k.Read(func(tx *KernelTx) error { _, err := notes.Indexed(tx, "note-topics", "y"); return err })
	wantKind(t, err, agent.KindInternal)
}
