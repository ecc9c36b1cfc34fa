package runtime

import "time"

// outboxPatience bounds the wait of a run's end for a reader that does not read.
const outboxPatience = 2 * time.Second

// outbox runs functions that can block (writes to a stopped terminal, or to a pipe without
// a reader) on a goroutine of its own. In the broker, such a write would hold up the end of
// the run and the loop that enforces the limits.
type outbox struct {
	work  chan func()
	over  chan struct{} // closed: what is left is given up
	ended chan struct{} // closed: all is done
}

// newOutbox starts the one goroutine that does the work, so everything is done in the order
// of put. It may outlive until, stuck in a write that never returns; the process's end ends
// it.
func newOutbox(capacity int) *outbox {
	o := &outbox{work: make(chan func(), capacity), over: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		for f := range o.work {
			f()
		}
	}()
	return o
}

// put waits while there is no room: nothing is lost before the end, and the
// agent waits with it.
func (o *outbox) put(f func()) {
	select {
	case o.work <- f:
	case <-o.over:
	}
}

// until calls stop, which ends the last caller of put, and does the remaining work
// meanwhile. It gives up after outboxPatience.
func (o *outbox) until(stop func() error) error {
	patience := time.AfterFunc(outboxPatience, func() { close(o.over) })
	defer patience.Stop()
	err := stop()
	close(o.work)
	select {
	case <-o.ended:
	case <-o.over:
	}
	return err
}
