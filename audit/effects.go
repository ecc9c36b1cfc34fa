package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Effect is a record that follows from another one, over so many steps.
type Effect struct {
	Entry
	Depth int
}

// Effects returns the records that follow from one that the Chain has found, itself first: each behind that from which
// it follows, in the order of their times. It is what Cause leads back from, and goes at most so many steps down and has
// at most so many records. more says that there may be others.
func (c *Chain) Effects(of Entry, steps, most int) (all []Effect, more bool, err error) {
	f := &effects{chain: c, steps: steps, most: most, causes: map[string]int{}, seen: map[string]bool{}}
	f.add(of, -1)
	// What a call carries is recorded before it, and so is found when the log is read again.
	for before := 0; before < len(f.found) && err == nil && !f.full; {
		before = len(f.found)
		err = f.read()
	}
	if err == ErrDeep {
		f.full, err = true, nil
	}
	return f.inOrder(), f.full, err
}

// effects is one search.
type effects struct {
	chain       *Chain
	steps, most int

	found   []Effect
	parents []int          // of found, by its index; -1: the first
	causes  map[string]int // what records name as their cause, by the index of found
	seen    map[string]bool
	full    bool // there are more than are wanted
}

// names are the texts under which what follows from a record finds it: as a call, as the start and the end of a run,
// and as what made runs.
func names(e Entry) (all []string) {
	switch {
	case e.Kind == KindStart:
		all = append(all, "start "+string(e.Run))
	case e.Kind == KindEnd:
		all = append(all, "end "+string(e.Run))
	case e.called(e.Correlation):
		all = append(all, "call "+e.Correlation)
	}
	if e.Verdict == VerdictAllow {
		for _, object := range strings.Fields(e.Object) {
			all = append(all, "made "+object)
		}
	}
	return all
}

// causes are the names of what a record follows from, of which the first that there is counts. It is as Chain.Cause.
func causesOf(e Entry) []string {
	run := string(e.Run)
	switch {
	case e.Causation != "" && e.Kind == KindEnd:
		return []string{"call " + e.Causation, "end " + e.Causation}
	case e.Causation != "":
		return []string{"call " + e.Causation}
	case e.Kind == KindStart:
		return []string{"made " + run}
	case run != "" && (e.Principal == PrincipalRun(e.Run) || e.Kind == KindEnd):
		return []string{"start " + run}
	}
	return nil
}

// look takes a record that follows from one that was found.
func (f *effects) look(e Entry) {
	for _, cause := range causesOf(e) {
		if parent, is := f.causes[cause]; is && (f.chain.May == nil || f.chain.May(e)) {
			f.add(e, parent)
			return
		}
	}
}

func (f *effects) add(e Entry, parent int) {
	e.Prev = "" // an entry may be in the queue and written already, with more
	e.Version, e.Number, e.Queue = 0, 0, 0
	key := fmt.Sprint(e.Time.UnixMicro(), e)
	if f.seen[key] {
		return
	}
	f.seen[key] = true
	depth := 0
	if parent >= 0 {
		depth = f.found[parent].Depth + 1
	}
	if depth > f.steps || len(f.found) == f.most {
		f.full = true
		return
	}
	f.found, f.parents = append(f.found, Effect{e, depth}), append(f.parents, parent)
	for _, name := range names(e) {
		f.causes[name] = len(f.found) - 1
	}
}

// read looks at what is written from shortly before the first record on.
func (f *effects) read() error {
	c := f.chain
	if err := c.open(); err != nil {
		return err
	}
	for i := max(c.at, 0); i < len(c.segments); i++ {
		if err := c.load(i); err != nil {
			return err
		}
		begin := 0
		if i == c.at {
			begin = max(0, min(c.end, len(c.text)+near)-2*near)
		}
		if c.Most -= int64(len(c.text) - begin); c.Most < 0 {
			return ErrDeep
		}
		for line := range bytes.Lines(c.text[begin:]) {
			if r, err := parse(bytes.TrimSuffix(line, []byte("\n"))); err == nil && r.Number <= c.last {
				f.look(r.Entry)
			}
		}
	}
	for _, e := range c.Queued {
		f.look(e)
	}
	return nil
}

// inOrder are those that were found, each behind its cause.
func (f *effects) inOrder() (all []Effect) {
	below := map[int][]int{}
	for i, parent := range f.parents {
		below[parent] = append(below[parent], i)
	}
	var add func(of int)
	add = func(of int) {
		slices.SortStableFunc(below[of], func(a, b int) int {
			return cmp.Or(f.found[a].Time.Compare(f.found[b].Time), cmp.Compare(a, b))
		})
		for _, i := range below[of] {
			all = append(all, f.found[i])
			add(i)
		}
	}
	add(-1)
	return all
}
