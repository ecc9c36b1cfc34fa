package ledger

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
)

// spare is a reservation that was made for the next call of a service, together with the
// settlement of the last one. The call takes it without waiting for the disk. In the file it is a
// reservation whose service may have begun, so after a crash it counts in full; this process
// knows better while it is unused.
type spare struct {
	run   agent.Run
	drawn budget.Reservation // its names from the beginning, the rest when it is idle
	state spareState
	timer *time.Timer
}

type spareState int

const (
	spareDrawing spareState = iota // its row may be on the way to the disk
	spareIdle                      // its row is on the disk
	spareEnded                     // it is not taken any more
)

const (
	// sparesMost bounds the spares of a run. A run has as many as it had calls at once.
	sparesMost = 64
	// spareTime is how long a spare waits for a call. Meanwhile others see it as reserved.
	spareTime = 5 * time.Second
)

// spares are those of all runs, and the calls in them.
type spares struct {
	mu     sync.Mutex // guards the following
	closed bool
	runs   map[agent.ID][]*spare
	taken  map[string]audit.Entry // of the call in a spare, by the reservation's id
}

// begin enters a spare that will be drawn; nil: the run has enough.
func (p *spares) begin(run agent.Run) *spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.runs[run.Spec.ID]) >= sparesMost {
		return nil
	}
	s := &spare{run: run, drawn: budget.Reservation{ID: string(agent.NewID()), Run: run.Spec.ID}}
	p.runs[run.Spec.ID] = append(p.runs[run.Spec.ID], s)
	return s
}

// may reports whether s may still be drawn: its run has not ended meanwhile.
func (p *spares) may(s *spare) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.state == spareDrawing
}

// ready offers a spare whose row is on the disk, until end. It reports false where it was ended before.
func (p *spares) ready(s *spare, drawn budget.Reservation, end *time.Timer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.drawn, s.timer = drawn, end
	if s.state != spareDrawing {
		return false
	}
	s.state = spareIdle
	return true
}

// idle returns the spares that a call of a run may take, the smallest first.
func (p *spares) idle(run agent.ID) []*spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(p.runs[run]), func(s *spare) bool { return s.state != spareIdle })
	slices.SortStableFunc(all, func(a, b *spare) int {
		return cmp.Compare(a.drawn.Amounts[budget.Tokens], b.drawn.Amounts[budget.Tokens])
	})
	return all
}

// unused returns what the idle spares of a user hold.
func (p *spares) unused(owner uint32) (all []budget.Reservation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.runs {
		for _, s := range of {
			if s.state == spareIdle && s.run.Owner.UID == owner {
				all = append(all, s.drawn)
			}
		}
	}
	return all
}

// take gives a spare to a call, unless another was faster. The entry is recorded with the
// settlement.
func (p *spares) take(s *spare, e audit.Entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.state != spareIdle {
		return false
	}
	s.timer.Stop()
	s.state = spareEnded // for a caller that has it from idle
	p.drop(s)
	p.taken[s.drawn.ID] = e
	return true
}

// settled returns the entry of the call that took a spare; false: it took none.
func (p *spares) settled(reservation string) (e audit.Entry, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, found = p.taken[reservation]
	delete(p.taken, reservation)
	return e, found
}

// unsettled is for a call in a spare whose reservation stays: settled returned its entry.
func (p *spares) unsettled(reservation string, e audit.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[reservation] = e
}

// end retires the spares that match, and returns them and their rows. A spare that is not drawn yet
// is not drawn any more; the row of one that is being drawn has its names only, because ready may
// still write the rest.
func (p *spares) end(match func(*spare) bool) (ended []*spare, rows []budget.Reservation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.runs {
		for _, s := range of {
			if match(s) {
				s.state = spareEnded
				ended, rows = append(ended, s), append(rows, s.drawn)
			}
		}
	}
	return ended, rows
}

// endOne is end for the row of a reservation. It reports whether nothing has begun in it.
func (p *spares) endOne(run agent.ID, reservation string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.runs[run] {
		if s.drawn.ID == reservation {
			s.state = spareEnded
			return true
		}
	}
	return false
}

// forget drops spares whose rows are gone.
func (p *spares) forget(gone ...*spare) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range gone {
		if s.timer != nil {
			s.timer.Stop()
		}
		p.drop(s)
	}
}

// drop takes a spare out of its run's. p.mu is held.
func (p *spares) drop(s *spare) {
	run := s.run.Spec.ID
	p.runs[run] = slices.DeleteFunc(p.runs[run], func(o *spare) bool { return o == s })
	if len(p.runs[run]) == 0 {
		delete(p.runs, run)
	}
}

func (p *spares) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}
