package lease

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/store"
)

// scanned is what the indexes and the sum of boxes should have, from a look at all boxes.
type scanned struct {
	counts map[uint32]Count
	due    map[Of]bool
	named  map[string]int
}

func scan(tx *store.KernelTx, now time.Time) (s scanned, err error) {
	s = scanned{map[uint32]Count{}, map[Of]bool{}, map[string]int{}}
	err = Boxes.Each(tx, func(b *Box) {
		if b.Kind != OfQueue {
			n := s.counts[b.Owner]
			s.counts[b.Owner] = Count{n.Boxes + 1, n.Messages + b.Messages, n.Dead + b.Dead}
		}
		if !b.Expires.IsZero() && !now.Before(b.Expires) && b.Dead < Usual {
			s.due[b.Of] = true
		}
		if b.Kind != OfRun {
			s.named[fmt.Sprint(b.Owner, b.Name)]++
		}
	})
	return s, err
}

// world is a file with some boxes, to which things happen.
type world struct {
	testing.TB
	path  string
	file  *store.Kernel
	now   time.Time
	boxes []Of
}

func (w *world) open() {
	var err error
	if w.file, err = store.OpenKernel(w.path, time.Minute, slices.Concat(Tables(), blob.Tables())...); err != nil {
		w.Fatal(err)
	}
}

// happens does one thing. A refusal is one of the things that happen.
func (w *world) happens(tx *store.KernelTx, draw *rand.Rand) error {
	of := w.boxes[draw.IntN(len(w.boxes))]
	box, err := Boxes.Get(tx, of.ID())
	if err != nil {
		return err
	}
	first := func(table store.Table[Message]) *Message {
		found, _, perr := table.Page(tx, of.ID()+"/", "", 1)
		if err = perr; len(found) == 0 {
			return nil
		}
		return found[0]
	}
	switch draw.IntN(10) {
	case 0, 1, 2, 3:
		m := &Message{Mail: api.Mail{Sent: w.now, Body: []byte(`1`)}}
		if draw.IntN(2) == 0 {
			m.Expires = w.now.Add(time.Duration(1+draw.IntN(5)) * time.Second)
		}
		return Put(tx, of, m)
	case 4, 5:
		m := first(Messages)
		if m == nil || err != nil {
			return err
		}
		if m, err = Take(tx, of, m.ID); err == nil && draw.IntN(2) == 0 {
			err = Bury(tx, of, m, "no", w.now)
		}
		return err
	case 6:
		m := first(Letters)
		if m == nil || err != nil {
			return err
		}
		if draw.IntN(2) == 0 {
			return Requeue(tx, box, m)
		}
		return Discard(tx, box, m)
	case 7:
		_, err := Move(tx, of, w.boxes[draw.IntN(len(w.boxes))], w.now, func(*Message) bool { return draw.IntN(2) == 0 })
		return err
	case 8:
		if draw.IntN(4) == 0 {
			return Forget(tx, of)
		}
		return nil
	}
	due, err := Due(tx, w.now)
	for _, of := range due {
		if err == nil {
			err = Expire(tx, of, w.now)
		}
	}
	return err
}

// compare compares what a look at all boxes finds with what is kept of it.
func (w *world) compare(tx *store.KernelTx) error {
	want, err := scan(tx, w.now)
	if err != nil {
		return err
	}
	if counts, err := Counted(tx); err != nil || !maps.Equal(counts, want.counts) {
		return fmt.Errorf("counted %v (%w), want %v", counts, err, want.counts)
	}
	due, err := Due(tx, w.now)
	if err != nil || len(due) != len(want.due) || slices.ContainsFunc(due, func(of Of) bool { return !want.due[of] }) {
		return fmt.Errorf("due: %v (%w), want %v", due, err, want.due)
	}
	for _, of := range w.boxes {
		found, err := Named(tx, of.Owner, of.Name)
		if err != nil || of.Kind != OfRun && len(found) != want.named[fmt.Sprint(of.Owner, of.Name)] {
			return fmt.Errorf("named %s: %v (%w), want %v", of.Name, found, err, want.named)
		}
	}
	return nil
}

// Whatever happens to boxes, also behind a new start, what is kept of all of them is what a look at all of them
// finds, and Check agrees.
func TestWhatIsKeptOfAllBoxes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	w := &world{TB: t, path: filepath.Join(t.TempDir(), "kernel.db"), now: time.Unix(1_800_000_000, 0).UTC()}
	long := fmt.Sprintf("%0100d", 7) // longer than a term
	for owner := range uint32(3) {
		w.boxes = append(w.boxes, RunBox(owner, agent.NewID()), NameBox(owner, "", "critic"), NameBox(owner, "acme", "critic"), NameBox(owner, "", long), NameBox(owner, "", long+"8"), QueueBox(owner, "", "critic"))
	}
	w.open()
	for turn := range 600 {
		if err := w.file.Update(func(tx *store.KernelTx) error { return w.happens(tx, draw) }); err != nil {
			t.Fatal(err)
		}
		if err := w.file.Read(w.compare); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Duration(draw.IntN(2)) * time.Second / 2)
		if turn%150 == 149 {
			if problems, err := w.file.Check(); err != nil || problems != nil {
				t.Fatal(problems, err)
			}
			if err := w.file.Close(); err != nil {
				t.Fatal(err)
			}
			w.open()
		}
	}
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
}

// A box with no place for dead letters is not due, or it would be looked at for ever, until it has place again.
func TestABoxWithoutPlaceForLettersIsNotDue(t *testing.T) {
	t.Parallel()
	w := &world{TB: t, path: filepath.Join(t.TempDir(), "kernel.db"), now: time.Unix(1_800_000_000, 0).UTC()}
	w.open()
	of, at := NameBox(1, "", "critic"), w.now
	for _, step := range []struct {
		is   int
		does func(tx *store.KernelTx) error
	}{
		{0, func(tx *store.KernelTx) error {
			for range Usual - 1 {
				if err := Put(tx, of, &Message{Mail: api.Mail{Sent: at, Expires: at.Add(time.Second), Body: []byte(`1`)}}); err != nil {
					return err
				}
			}
			return nil
		}},
		{1, func(*store.KernelTx) error { w.now = at.Add(time.Second); return nil }},
		{0, func(tx *store.KernelTx) error { return Expire(tx, of, w.now) }},
		{0, func(tx *store.KernelTx) error { // one becomes a letter, one has no place
			for range 2 {
				if err := Put(tx, of, &Message{Mail: api.Mail{Sent: w.now, Expires: w.now.Add(time.Second), Body: []byte(`1`)}}); err != nil {
					return err
				}
			}
			w.now = w.now.Add(time.Second)
			return Expire(tx, of, w.now)
		}},
		{1, func(tx *store.KernelTx) error {
			box, err := Boxes.Get(tx, of.ID())
			if err != nil {
				return err
			}
			if box.Messages != 1 || box.Dead != Usual {
				return fmt.Errorf("%+v", box)
			}
			letters, _, err := Letters.Page(tx, of.ID()+"/", "", 1)
			if err != nil {
				return err
			}
			return Discard(tx, box, letters[0])
		}},
	} {
		var due []Of
		err := w.file.Update(func(tx *store.KernelTx) (err error) {
			if err = step.does(tx); err == nil {
				due, err = Due(tx, w.now)
			}
			return err
		})
		if err != nil || len(due) != step.is {
			t.Fatalf("%v are due, want %d: %v", due, step.is, err)
		}
	}
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
}
