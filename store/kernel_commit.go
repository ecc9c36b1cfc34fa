package store

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// maxBatch bounds the changes that share one commit, and so how long the first waits.
const maxBatch = 1024

// errUnwritten ends a transaction in which no change was written: there is nothing to commit.
var errUnwritten = errors.New("nothing was written")

// errSpoiled ends a transaction in which a function failed after it had written.
var errSpoiled = errors.New("a change failed after it had written")

// change is one call of Update.
type change struct {
	decide   func(*KernelTx) error
	err      error
	panicked bool // with value; the caller of Update gets the panic
	value    any
	done     chan struct{} // closed when all above is final
}

// commits is the queue of changes, and the goroutine that commits them.
type commits struct {
	mu      sync.Mutex // guards what follows
	queue   []*change
	running bool // the goroutine was started; Close ends it
	closed  bool

	came  chan struct{} // has an element while something is new
	ended chan struct{} // closed by the goroutine
}

func newCommits() commits {
	return commits{came: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Update runs decide in a transaction, and returns when its changes are on the disk.
//
// Many callers share one commit: while one is written, the changes that arrive wait for
// the next. The functions run one after the other, each sees what those before it wrote,
// and all answers come after the commit. An error of decide goes to its caller alone, so
// decide must write nothing before its last check. If it has, or if it panics, the others
// are run again without it: decide may run more than once, and must change nothing but
// the transaction. The panic is raised in the caller of Update. decide must not call
// Update.
func (k *Kernel) Update(decide func(*KernelTx) error) error {
	c := &change{decide: decide, done: make(chan struct{})}
	if !k.enqueue(c) {
		return &agent.Error{Kind: agent.KindBusy, Step: step, Message: k.path + " was closed", Hint: "try again when cloved serves again"}
	}
	<-c.done
	if c.panicked {
		panic(c.value)
	}
	return k.explained(c.err)
}

// enqueue reports whether the change will be answered.
func (k *Kernel) enqueue(c *change) bool {
	k.commits.mu.Lock()
	defer k.commits.mu.Unlock()
	if k.commits.closed {
		return false
	}
	if !k.commits.running {
		k.commits.running = true
		go k.serve()
	}
	k.commits.queue = append(k.commits.queue, c)
	k.commits.notify()
	return true
}

// close lets the goroutine end after what is queued, and waits for that.
func (c *commits) close() {
	c.mu.Lock()
	c.closed = true
	running := c.running
	c.notify()
	c.mu.Unlock()
	if running {
		<-c.ended
	}
}

func (c *commits) notify() {
	select {
	case c.came <- struct{}{}:
	default:
	}
}

// take returns what waits, at most limit changes, and whether more can come.
func (c *commits) take(limit int) (taken []*change, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(limit, len(c.queue))
	taken, c.queue = c.queue[:n:n], c.queue[n:]
	if len(c.queue) == 0 {
		c.queue = nil // or its array would keep the changes that are done
	}
	return taken, !c.closed || len(c.queue) > 0
}

// serve commits until Close.
func (k *Kernel) serve() {
	debug.SetPanicOnFault(true)
	for {
		batch, open := k.commits.take(maxBatch)
		switch {
		case len(batch) > 0:
			k.settle(batch)
		case !open:
			close(k.commits.ended)
			return
		default:
			<-k.commits.came
		}
	}
}

// settle commits the batch, and what arrives meanwhile, and answers.
func (k *Kernel) settle(batch []*change) {
	returned := false
	defer func() {
		if returned {
			return
		}
		// A function ended this goroutine, as the methods of testing.T do.
		failAll(batch, fmt.Errorf("a change of %s ended its goroutine", k.path))
		answer(batch)
		go k.serve()
	}()
	if err := k.commit(&batch, true); errors.Is(err, errSpoiled) {
		for len(batch) > 0 { // each alone
			one := batch[:1:1]
			one[0].err, one[0].panicked = nil, false
			if err := k.commit(&one, false); err != nil && !errors.Is(err, errSpoiled) {
				failAll(one, err)
			}
			answer(one)
			batch = batch[1:]
		}
	} else if err != nil {
		failAll(batch, err)
	}
	answer(batch)
	returned = true
}

// answer lets the callers of Update go on.
func answer(batch []*change) {
	for _, c := range batch {
		close(c.done)
	}
}

// failAll gives the whole batch err: nothing of it was kept. That replaces errors of
// decide too, which may follow from what another change wrote.
func failAll(batch []*change, err error) {
	for _, c := range batch {
		c.err, c.panicked = err, false
	}
}

// commit runs the changes in one transaction. With grow it adds those that arrive before
// the commit.
func (k *Kernel) commit(batch *[]*change, grow bool) (err error) {
	defer k.edge(&err, debug.SetPanicOnFault(true))
	if k.broken.Load() {
		return errDamaged
	}
	err = k.db.Update(func(tx *bbolt.Tx) error {
		wrote, err := k.runAll(tx, *batch)
		for grow && err == nil && len(*batch) < maxBatch {
			// The callers that the last commit answered come again at once. One turn of
			// the Go scheduler lets them, which is much shorter than a commit.
			runtime.Gosched()
			more, _ := k.commits.take(maxBatch - len(*batch))
			if len(more) == 0 {
				break
			}
			*batch = append(*batch, more...)
			var written bool
			written, err = k.runAll(tx, more)
			wrote = wrote || written
		}
		if err == nil && !wrote {
			return errUnwritten
		}
		return err
	})
	if errors.Is(err, errUnwritten) {
		return nil
	}
	return err
}

// runAll runs the changes, and reports whether one of them wrote.
func (k *Kernel) runAll(tx *bbolt.Tx, batch []*change) (wrote bool, err error) {
	for _, c := range batch {
		t := k.transaction(tx)
		c.run(t)
		switch {
		case t.failed != nil:
			return wrote, t.failed
		case t.wrote && (c.err != nil || c.panicked):
			return wrote, errSpoiled
		}
		wrote = wrote || t.wrote
	}
	return wrote, nil
}

// run calls decide, and keeps how it ended.
func (c *change) run(t *KernelTx) {
	c.panicked = true
	defer func() {
		t.tx = nil // a use after this is a panic of the caller
		if c.panicked {
			c.value = recover()
		}
	}()
	c.err = c.decide(t)
	c.panicked = false
}

// edge is deferred around each use of bbolt, whose panic is not one of decide's.
func (t *KernelTx) edge(err *error) {
	if t.tx == nil {
		panic("store: a transaction of kernel.db was used after its end")
	}
	if value := recover(); value != nil {
		*err = fmt.Errorf("%w: %v", errDamaged, value)
		t.failed = *err
	}
}

// alone runs read while no transaction writes. bbolt's check of pages needs that: a page that
// another transaction frees meanwhile looks to it like a page that is used and free.
func (k *Kernel) alone(read func(*bbolt.Tx) error) (err error) {
	defer k.edge(&err, debug.SetPanicOnFault(true))
	if k.broken.Load() {
		return errDamaged
	}
	var failed error
	err = k.db.Update(func(tx *bbolt.Tx) error {
		failed = read(tx)
		return errUnwritten // nothing is to be committed
	})
	if errors.Is(err, errUnwritten) {
		return failed
	}
	return err
}
