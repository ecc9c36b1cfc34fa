package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// progress is how far Apply is with one change.
type progress int

const (
	waits   progress = iota
	begun            // what it needs is being done first
	made             // or the host had it
	refused          // Refused says why
)

// step is one change with its paths below target; from is that of a renamed directory.
type step struct {
	change    Change
	rel, from string
	progress  progress
	done      bool // it belongs to the list of what was done
}

// errCircle is for a directory that must be moved away before the one that comes there, and
// after it: two that were exchanged, or one that was moved into a new one of its own name. With
// a third name in between, an Apply that is killed would leave the directory there.
const errCircle refusal = "directories took each other's places: move one of them by hand, and apply again"

// agenda is the order of the changes: a directory before its entries, and out of a place
// what is renamed before something else comes there.
type agenda struct {
	steps   []step
	at      map[string]int // the step that makes the entry, by its path below target
	renames []int
}

func (a *applier) plan(changes []Change) *agenda {
	changes = slices.SortedStableFunc(slices.Values(changes), func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	g := &agenda{at: map[string]int{}}
	for i, c := range changes {
		s := step{change: c}
		var err, ferr error
		s.rel, err = a.relative(c.Path)
		if c.Kind == Renamed {
			s.from, ferr = a.relative(c.From)
			g.renames = append(g.renames, i)
		}
		if err = cmp.Or(err, ferr); err != nil {
			s.change.Refused = err.Error()
		}
		if s.change.Refused != "" {
			s.progress, s.done = refused, true
		}
		if c.Kind != Deleted && err == nil {
			g.at[s.rel] = i
		}
		g.steps = append(g.steps, s)
	}
	return g
}

// list is what was done and refused, by path.
func (g *agenda) list() (done []Change) {
	for _, s := range g.steps {
		if s.done {
			done = append(done, s.change)
		}
	}
	return done
}

// now is where target has what the lower layer had as rel, after the renames that were made.
func (g *agenda) now(rel string) string {
	longest, at := "", rel
	for _, i := range g.renames {
		if s := g.steps[i]; s.progress == made && within("/"+rel, "/"+s.from) && len(s.from) > len(longest) {
			longest, at = s.from, s.rel+rel[len(s.from):]
		}
	}
	return at
}

// do makes the change i, and before it what it needs. Only an error that ends the whole is
// returned.
func (a *applier) do(ctx context.Context, g *agenda, i int) error {
	s := &g.steps[i]
	if s.progress != waits {
		return nil
	}
	s.progress = begun
	if err := ctx.Err(); err != nil {
		return err
	}
	err := a.doFirst(ctx, g, s)
	done := false
	if a.lost = nil; err == nil {
		done, err = a.apply(ctx, g, s)
	}
	var why refusal
	switch {
	case errors.As(err, &why):
		s.progress, s.done, s.change.Refused = refused, true, string(why)
	case err != nil:
		return fmt.Errorf("cannot apply %s: %w", printable(s.change.Path), err)
	default:
		s.progress, s.done, s.change.Lost = made, done, strings.Join(a.lost, ", ")
	}
	return nil
}

// doFirst makes the directories above s, and moves away what is renamed out of its place. It
// refuses what would remove or replace a directory that a refused rename has left there.
func (a *applier) doFirst(ctx context.Context, g *agenda, s *step) error {
	for i, r := range s.rel {
		if r != '/' {
			continue
		}
		above, ok := g.at[s.rel[:i]]
		if !ok {
			continue
		}
		if err := a.do(ctx, g, above); err != nil {
			return err
		}
		if above := &g.steps[above]; above.progress == refused && above.change.Kind == Renamed {
			return refusal("its directory was not renamed")
		}
	}
	if s.change.Type == TypeDir && s.change.Kind == Changed && s.change.Was == "" {
		return nil // a directory that stays
	}
	for _, i := range g.renames {
		other := &g.steps[i]
		if other == s || !within("/"+g.now(other.from), "/"+s.rel) {
			continue
		}
		if err := a.do(ctx, g, i); err != nil {
			return err
		}
		switch other.progress {
		case made:
		case begun:
			return errCircle
		default:
			return refusal("the directory " + printable(other.from) + " was not moved away")
		}
	}
	return nil
}
