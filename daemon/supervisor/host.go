package supervisor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// host is the one caller for whom a foreground run was started. It misses nothing:
// output that is written before it connects waits for it, and the agent waits with it when
// it is slow, as for a terminal that was stopped.
type host struct {
	pieces chan api.SessionOutput // written and not yet sent; when it is full, the agent waits
	shut   map[string]mark        // by stream: the caller's own reader of it has gone
	taken  atomic.Bool            // a session is the host's, or the time for one is over
	came   mark                   // its connection was received, for which the end of the run waits (await)
	over   mark                   // all output is in pieces
	left   mark                   // the caller has gone, or did not come
	hasty  mark                   // it is not waited for any longer
}

// mark is something that happens at most once.
type mark struct {
	done chan struct{}
	set  func()
}

// newMark makes one that has not happened; set may be called any number of times.
func newMark() mark {
	done := make(chan struct{})
	return mark{done, sync.OnceFunc(func() { close(done) })}
}

// newHost makes a host that has not come yet. Messages that come meanwhile wait in pieces.
func newHost() *host {
	return &host{pieces: make(chan api.SessionOutput, queued), shut: map[string]mark{stdout: newMark(), stderr: newMark()},
		came: newMark(), over: newMark(), left: newMark(), hasty: newMark()}
}

// take makes a session the host's; there is one.
func (h *host) take() bool { return h != nil && h.taken.CompareAndSwap(false, true) }

// say waits for room. Its error is EPIPE, for a stream without a reader.
func (h *host) say(piece api.SessionOutput) error {
	shut := h.shut[piece.Stream].done
	// First, because select chooses at random: a stream without a reader is EPIPE even
	// where there is room.
	select {
	case <-shut:
		return unix.EPIPE
	case <-h.left.done:
		return nil
	default:
	}
	// Then without waiting: a host that is not waited for any longer still gets what fits.
	select {
	case h.pieces <- piece:
		return nil
	default:
	}
	select {
	case h.pieces <- piece:
	case <-shut:
		return unix.EPIPE
	case <-h.left.done:
	case <-h.hasty.done:
	}
	return nil
}

// next waits for a piece; more is false behind the last one.
func (h *host) next() (piece api.SessionOutput, more bool) {
	select {
	case piece = <-h.pieces:
		return piece, true
	case <-h.left.done:
		return piece, false
	case <-h.over.done:
	}
	select {
	case piece = <-h.pieces:
		return piece, true
	default:
		return piece, false
	}
}

// denied passes on a connection that the network rules refused. It never waits.
func (h *host) denied(d agent.Denial, reason, hint string) {
	h.report(api.SessionOutput{Denied: &api.SessionDenied{Denial: d, Reason: reason, Hint: hint}})
}

// warned passes on a budget that reached its warning.
func (h *host) warned(b api.Budget) {
	h.report(api.SessionOutput{Budget: &api.SessionBudget{Budget: b}})
}

// paused passes on the budget that the run is paused for.
func (h *host) paused(b api.Budget, timeout time.Time) {
	h.report(api.SessionOutput{Budget: &api.SessionBudget{Budget: b, Paused: true, Timeout: timeout}})
}

// homeCopied passes on that another run has the kept home.
func (h *host) homeCopied(name string) { h.report(api.SessionOutput{HomeCopied: name}) }

// asked passes on a question that waits for people.
func (h *host) asked(_ context.Context, a api.Approval) { h.report(api.SessionOutput{Asked: &a}) }

// report is say for what clove itself has to say. It never waits.
func (h *host) report(piece api.SessionOutput) {
	select {
	case h.pieces <- piece:
	default:
	}
}

// stopReading notes that the caller's own reader of a stream has gone.
func (h *host) stopReading(stream string) {
	if shut, known := h.shut[stream]; known {
		shut.set()
	}
}

// await waits until the host is there, or is not waited for.
func (h *host) await() {
	select {
	case <-h.came.done:
	case <-h.left.done:
	case <-h.hasty.done:
	}
}
