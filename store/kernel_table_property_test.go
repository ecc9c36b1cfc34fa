package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

// notebook is what the table of notes should have.
type notebook map[string]note

// most returns the error of the bound that a note would exceed.
func (b notebook) most(n note) error {
	old, there := b[notes.Key(&n)]
	ofRun, ofTopic := 0, map[string]int{}
	for _, other := range b {
		if other.Run == n.Run {
			ofRun++
		}
		for _, topic := range slices.Compact(slices.Sorted(slices.Values(other.Topics))) {
			ofTopic[topic]++
		}
	}
	if !there && ofRun >= notesOfRun {
		return errNotesOfRun
	}
	for _, topic := range n.Topics {
		if !slices.Contains(old.Topics, topic) && ofTopic[topic] >= notesOfTopic {
			return errNotesOfTopic
		}
	}
	return nil
}

// below is what Below and Indexed should find: all notes, or those of a topic.
func (b notebook) below(topic string) string {
	var found []*note
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if n := b[key]; topic == "" || slices.Contains(n.Topics, topic) {
			found = append(found, &n)
		}
	}
	return noteIDs(found)
}

// sums is what Summed should find, as text.
func (b notebook) sums() string {
	all := map[string][]int{}
	for _, n := range b {
		if n.Text != "" {
			all[n.Text] = plus(all[n.Text], []int{1, len(n.Topics), 0})
		}
	}
	return fmt.Sprint(all)
}

// noteChange is one thing that happens to the table.
type noteChange struct {
	what int
	n    note
}

func drawChange(t *rapid.T) noteChange {
	return noteChange{rapid.IntRange(0, 19).Draw(t, "what"), note{
		Run:    rapid.SampledFrom([]agent.ID{aRun, bRun}).Draw(t, "run"),
		ID:     fmt.Sprint(rapid.IntRange(1, notesOfRun+1).Draw(t, "id")),
		Topics: rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "xy"}), 0, 4).Draw(t, "topics"),
		Text:   rapid.SampledFrom([]string{"", "t", "u"}).Draw(t, "text"),
	}}
}

// apply makes a change in the table and in the notebook.
func (b notebook) apply(tx *KernelTx, c noteChange) error {
	switch {
	case c.what == 0:
		maps.DeleteFunc(b, func(_ string, other note) bool { return other.Run == c.n.Run })
		_, err := tx.ForgetRun(7, c.n.Run)
		return err
	case c.what < 5:
		delete(b, notes.Key(&c.n))
		return notes.Delete(tx, notes.Key(&c.n))
	}
	want := b.most(c.n)
	if err := notes.Put(tx, &c.n); !errors.Is(err, want) {
		return fmt.Errorf("%+v: got %w, want %w", c.n, err, want)
	}
	if want == nil {
		b[notes.Key(&c.n)] = c.n
	}
	return nil
}

// compare returns how the table differs from the notebook.
func (b notebook) compare(tx *KernelTx) error {
	all, err := notes.Below(tx, "")
	if err != nil || noteIDs(all) != b.below("") {
		return fmt.Errorf("all notes: %s (%w), want %s", noteIDs(all), err, b.below(""))
	}
	for _, topic := range []string{"x", "y", "xy"} {
		found, err := notes.Indexed(tx, "note-topics", topic)
		if err != nil || noteIDs(found) != b.below(topic) {
			return fmt.Errorf("the notes of %s: %s (%w), want %s", topic, noteIDs(found), err, b.below(topic))
		}
	}
	if sums, err := notes.Summed(tx, "note-sums"); err != nil || fmt.Sprint(sums) != b.sums() {
		return fmt.Errorf("the sums: %v (%w), want %s", sums, err, b.sums())
	}
	return nil
}

// After any changes the rows, indexes and sums are those of a notebook, and Check finds nothing.
func TestTablesAreWhatWasPut(t *testing.T) {
	t.Parallel()
	k := openNotes(t, kernelFile(t), notes)
	rapid.Check(t, func(t *rapid.T) {
		b := notebook{}
		changes := rapid.SliceOfN(rapid.Custom(drawChange), 1, 40).Draw(t, "changes")
		for _, run := range []agent.ID{aRun, bRun} { // what the sequence before left
			changes = slices.Insert(changes, 0, noteChange{0, note{Run: run}})
		}
		for _, c := range changes {
			if err := k.Update(func(tx *KernelTx) error { return b.apply(tx, c) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Read(b.compare); err != nil {
			t.Fatal(err)
		}
		if problems, err := k.Check(); err != nil || problems != nil {
			t.Fatal(problems, err)
		}
	})
}
