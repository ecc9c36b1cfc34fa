package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// note is a row of a table that only these tests declare.
type note struct {
	Run    agent.ID `json:"run"`
	ID     string   `json:"-"` // its key contains it
	Topics []string `json:"topics,omitempty"`
	Text   string   `json:"text,omitempty"`
}

const notesOfRun, notesOfTopic = 5, 6

var (
	errNotesOfRun   = errors.New("too many notes of a run")
	errNotesOfTopic = errors.New("too many notes of a topic")
)

var notes = Table[note]{
	Bucket: "notes",
	Noun:   "note",
	Key: func(n *note) string {
		if n.ID == "" {
			return ""
		}
		return string(n.Run) + "/" + n.ID
	},
	Fill: func(n *note, key string) error {
		var isKey bool
		if _, n.ID, isKey = strings.Cut(key, "/"); !isKey {
			return errors.New("it has no run")
		}
		return nil
	},
	Sound: func(n *note) error {
		if n.Text == "unsound" {
			return errors.New("it is not sound")
		}
		return nil
	},
	Indexes: []Index[note]{{Bucket: "note-topics", Terms: func(n *note) []string { return n.Topics },
		Bound: Bound[note]{notesOfTopic, func(*note) error { return errNotesOfTopic }}}},
	Sums: []Sum[note]{{Bucket: "note-sums", Of: func(n *note) (string, []int) {
		return n.Text, []int{1, len(n.Topics), 0}
	}}},
	Bound: Bound[note]{notesOfRun, func(*note) error { return errNotesOfRun }},
	OfRun: true,
}

const aRun, bRun agent.ID = "00000000000000aa", "00000000000000bb"

// openNotes opens the file at path with the table, until the test ends.
func openNotes(t testing.TB, path string, tables ...Declared) *Kernel {
	t.Helper()
	k, err := OpenKernel(path, patience, tables...)
	must(t, err)
	k.db.NoSync = true
	t.Cleanup(func() { k.Close() })
	return k
}

// noteIDs are the runs' last letters and the ids of what a method of the table found.
func noteIDs(found []*note) (ids string) {
	for _, n := range found {
		ids += fmt.Sprint(" ", string(n.Run[15:]), n.ID)
	}
	return strings.TrimPrefix(ids, " ")
}

// wantNotes fails unless a method of the table found these.
func wantNotes(t *testing.T, what, want string) func([]*note, error) {
	return func(found []*note, err error) {
		t.Helper()
		if got := noteIDs(found); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", what, got, err, want)
		}
	}
}

func wantSound(t *testing.T, k *Kernel) {
	t.Helper()
	if problems, err := k.Check(); err != nil || problems != nil {
		t.Errorf("%q, %v", problems, err)
	}
}

// putNotes stores notes of a run, as "id" or "id:topic,topic".
func putNotes(tx *KernelTx, run agent.ID, texts ...string) (err error) {
	for _, text := range texts {
		id, topics, _ := strings.Cut(text, ":")
		n := &note{Run: run, ID: id}
		if topics != "" {
			n.Topics = strings.Split(topics, ",")
		}
		err = firstOf(err, notes.Put(tx, n))
	}
	return err
}

// A table that another package declares stores, finds, replaces, removes and forgets its rows.
func TestATableOfAnotherPackage(t *testing.T) {
	t.Parallel()
	k := openNotes(t, kernelFile(t), notes)
	inTx(t, k, func(tx *KernelTx) error {
		return firstOf(putNotes(tx, aRun, "1:x", "2:x,y", "3"), putNotes(tx, bRun, "1:y,y"))
	})
	inTx(t, k, func(tx *KernelTx) error {
		wantNotes(t, "all", "a1 a2 a3 b1")(notes.Below(tx, ""))
		wantNotes(t, "of a run", "a1 a2 a3")(notes.Below(tx, RunKey(aRun, "")))
		wantNotes(t, "of x", "a1 a2")(notes.Indexed(tx, "note-topics", "x"))
		wantNotes(t, "of y", "a2 b1")(notes.Indexed(tx, "note-topics", "y"))
		if n, err := notes.Get(tx, string(aRun)+"/2"); err != nil || n.ID != "2" || !slices.Equal(n.Topics, []string{"x", "y"}) {
			t.Errorf("%+v, %v", n, err)
		}
		if n, err := notes.Get(tx, string(aRun)+"/9"); n != nil || err != nil {
			t.Errorf("one that is not there: %+v, %v", n, err)
		}
		return firstOf(putNotes(tx, aRun, "2:z,y"), notes.Delete(tx, string(bRun)+"/1"), notes.Delete(tx, string(bRun)+"/9"))
	})
	wantSound(t, k)
	inTx(t, k, func(tx *KernelTx) error {
		wantNotes(t, "of x, after one left it", "a1")(notes.Indexed(tx, "note-topics", "x"))
		wantNotes(t, "of y, after one is deleted", "a2")(notes.Indexed(tx, "note-topics", "y"))
		_, err := tx.ForgetRun(7, aRun)
		return firstOf(err, putNotes(tx, bRun, "4:z"))
	})
	inTx(t, k, func(tx *KernelTx) error {
		wantNotes(t, "after a run is forgotten", "b4")(notes.Below(tx, ""))
		wantNotes(t, "of z", "b4")(notes.Indexed(tx, "note-topics", "z"))
		return nil
	})
	wantSound(t, k)
}

// Pages of any size are together all rows of a prefix, and the last one is known as such.
func TestPagesOfATable(t *testing.T) {
	t.Parallel()
	k := openNotes(t, kernelFile(t), notes)
	inTx(t, k, func(tx *KernelTx) error {
		return firstOf(putNotes(tx, aRun, "1", "2", "3", "4"), putNotes(tx, bRun, "1", "2"))
	})
	must(t, k.Read(func(tx *KernelTx) error {
		for limit := range 8 {
			for prefix, want := range map[string]string{"": "a1 a2 a3 a4 b1 b2", RunKey(aRun, ""): "a1 a2 a3 a4", RunKey(bRun, ""): "b1 b2", "c": ""} {
				var all []*note
				after, pages := "", 0
				for pages == 0 || after != "" {
					page, next, err := notes.Page(tx, prefix, after, limit)
					if err != nil || len(page) > max(limit, 1) || len(page) == 0 && want != "" {
						t.Fatalf("pages of %d below %q: %d notes, %v", limit, prefix, len(page), err)
					}
					all, after, pages = append(all, page...), next, pages+1
				}
				if got := noteIDs(all); got != want {
					t.Errorf("pages of %d below %q: %q, want %q", limit, prefix, got, want)
				}
			}
		}
		page, next, err := notes.Page(tx, "", "", 1<<63-1)
		if len(page) != 6 || next != "" {
			t.Errorf("the largest page: %d, %q", len(page), next)
		}
		return err
	}))
}

// A value that cannot be stored is refused before anything is written: without a key, of no run, with
// a term that an index cannot have, and above each bound.
func TestATableRefuses(t *testing.T) {
	t.Parallel()
	k := openNotes(t, kernelFile(t), notes)
	inTx(t, k, func(tx *KernelTx) error {
		return firstOf(putNotes(tx, aRun, "1:x", "2:x", "3:x", "4:x", "5"), putNotes(tx, bRun, "1:x", "2:x", "3"))
	})
	for name, c := range map[string]struct {
		n    note
		want error // nil: any
	}{
		"no key":           {note{Run: aRun}, nil},
		"a long key":       {note{Run: bRun, ID: strings.Repeat("1", maxKey)}, nil},
		"no run":           {note{Run: "x", ID: "1"}, nil},
		"an empty term":    {note{Run: bRun, ID: "9", Topics: []string{""}}, nil},
		"a long term":      {note{Run: bRun, ID: "9", Topics: []string{strings.Repeat("x", 65)}}, nil},
		"a zero":           {note{Run: bRun, ID: "9", Topics: []string{"y", "y\x00z"}}, nil},
		"a run's sixth":    {note{Run: aRun, ID: "6"}, errNotesOfRun},
		"a topic's next":   {note{Run: bRun, ID: "9", Topics: []string{"y", "x"}}, errNotesOfTopic},
		"one that gets it": {note{Run: bRun, ID: "3", Topics: []string{"x"}}, errNotesOfTopic},
	} {
		must(t, k.Update(func(tx *KernelTx) error {
			if err := notes.Put(tx, &c.n); err == nil || c.want != nil && !errors.Is(err, c.want) || tx.wrote {
				t.Errorf("%s: %v, wrote %v", name, err, tx.wrote)
			}
			return nil
		}))
	}
	// A value may be replaced, and leaves space when it goes.
	inTx(t, k, func(tx *KernelTx) error {
		return firstOf(putNotes(tx, aRun, "1:x", "5:y"), putNotes(tx, aRun, "1:y"), putNotes(tx, bRun, "3:x"),
			notes.Delete(tx, string(aRun)+"/2"), putNotes(tx, aRun, "6:x"))
	})
	wantSound(t, k)
}
