package runtime

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/seccomp"
	"clove.run/clove/seccomp/notify"
)

// calls answers the system calls that the filters of a run hand over: those of the agent, and
// of each exec session, which has a listener of its own. It decides nothing: a call gets the
// answer that the profile gives it. A nil one is of a run without a filter.
type calls struct {
	filter *seccomp.Filter
	init   int // PID 1's pid on the host
	seen   func(observed)
	pace   *pace
	serves sync.WaitGroup

	lock      sync.Mutex // guards what is below
	listeners []*notify.Listener
	blind     bool // the kernel makes no listener
	closed    bool
}

// observed is a call that was handed over, and waits for its answer.
type observed struct {
	notify.Call
	From    *notify.Listener // reads what the call's arguments point to
	Name    string
	Verdict seccomp.Decision // what the profile answers
}

func newCalls(filter *seccomp.Filter, init int, share float64, seen func(observed)) *calls {
	return &calls{filter: filter, init: init, seen: seen, pace: newPace(share)}
}

// gatePatience bounds the wait for a thread that has said already that it waits.
const gatePatience = 10 * time.Second

// admit lets a process execute its command once it is seen, from outside, to be under its
// filter: a build that skips the filter silently must not start an agent. From then on the
// calls of the process and of all its children are answered. ours reports whether a process is
// the one that was started.
func (c *calls) admit(file *os.File, ours func(status map[string]string) bool) error {
	if c == nil {
		return errNonsense
	}
	if file == nil {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.blind = true
		return nil
	}
	listener, err := notify.New(file)
	if err != nil {
		return err
	}
	err = c.passGate(listener, ours)
	if err == nil && !c.serve(listener) {
		err = errors.New("the run is being ended")
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return nil
}

func (c *calls) passGate(listener *notify.Listener, ours func(status map[string]string) bool) error {
	call, err := listener.ReceiveWithin(gatePatience)
	if err != nil {
		return fmt.Errorf("cannot see the agent's filter: %w", err)
	}
	if !atGate(call) {
		return fmt.Errorf("cannot see the agent's filter: it makes %s first", seccomp.NameOf(call.Number))
	}
	status, err := restricted(int(call.Thread))
	if err != nil {
		return err
	}
	if _, err := restricted(c.init); err != nil {
		return err
	}
	if !ours(status) || !listener.Valid(call) {
		return errors.New("cannot trust the sandbox: the listener is another process's")
	}
	return listener.Refuse(call, 0)
}

// atGate reports whether a thread waits to become the agent. The agent can make that call as
// well, and gets the answer of a kernel that does not know the option.
func atGate(call notify.Call) bool {
	return call.Number == unix.SYS_PRCTL && uint32(call.Args[0]) == initproto.GateOption
}

// serve answers calls until the last process under the filter has ended; false: it is too
// late for that.
func (c *calls) serve(listener *notify.Listener) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.closed {
		return false
	}
	c.listeners = append(c.listeners, listener)
	c.serves.Add(1)
	go func() {
		defer c.serves.Done()
		defer c.leave(listener)
		for {
			call, err := listener.Receive()
			if err != nil {
				return
			}
			began := time.Now()
			c.answer(listener, call)
			c.pace.worked(time.Since(began))
		}
	}()
	return true
}

// leave closes a listener. If it failed with processes still there, the kernel refuses from
// now on what it handed over before.
func (c *calls) leave(listener *notify.Listener) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for i, l := range c.listeners {
		if l == listener {
			c.listeners = append(c.listeners[:i], c.listeners[i+1:]...)
			listener.Close()
			return
		}
	}
}

func (c *calls) answer(listener *notify.Listener, call notify.Call) {
	o := observed{call, listener, seccomp.NameOf(call.Number), c.filter.Answer(call.Number, call.Arch, call.Args)}
	gate := atGate(call)
	if !gate {
		c.seen(o)
	}
	// An error: the caller is gone, or the listener; then the kernel has refused it.
	switch {
	case o.Verdict.Allowed() && !gate:
		_ = listener.Continue(call)
	case o.Verdict.Errno != 0:
		_ = listener.Refuse(call, o.Verdict.Errno)
	case gate:
		_ = listener.Refuse(call, unix.EINVAL)
	default:
		_ = listener.Refuse(call, unix.ENOSYS)
	}
}

// unseen reports whether the filter refuses by itself and has not been checked yet.
func (c *calls) unseen() bool {
	if c == nil {
		return false
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.blind
}

// close ends the listeners: what is still under the filter is refused by the kernel.
func (c *calls) close() {
	if c == nil {
		return
	}
	c.pace.stop()
	c.lock.Lock()
	c.closed = true
	for _, listener := range c.listeners {
		listener.Close()
	}
	c.listeners = nil
	c.lock.Unlock()
	c.serves.Wait()
}

// unprivileged reads what the kernel says of a process, not what libcontainer reported.
func unprivileged(pid int) (status map[string]string, err error) {
	if status, err = pidfd.Status(pid); err != nil {
		return nil, err
	}
	if status["NoNewPrivs"] != "1" {
		return nil, fmt.Errorf("cannot trust the sandbox: no_new_privs is %q", status["NoNewPrivs"])
	}
	return status, nil
}

// restricted is unprivileged, and under a filter.
func restricted(pid int) (map[string]string, error) {
	status, err := unprivileged(pid)
	if err != nil {
		return nil, err
	}
	if mode := status["Seccomp"]; mode != "2" {
		return nil, fmt.Errorf("cannot trust the sandbox: the seccomp mode is %q, not 2 (filter)", mode)
	}
	return status, nil
}

// errNonsense is a message that the protocol does not allow at this point.
var errNonsense = errors.New("clove-init sent an unexpected message")

// pace bounds the processor time with which a run's calls are answered. It is the
// supervisor's, so no limit of the agent bounds it. A caller that is answered late waits;
// no other caller does.
type pace struct {
	share float64 // of one processor, paid off all the time
	lock  sync.Mutex
	owed  time.Duration // worked and not yet paid off by time
	at    time.Time     // when owed was right
	over  chan struct{} // closed: no caller waits any more
}

// paceShare is for a run whose calls that are refused are handed over, watchingShare for one
// where those that write or that a shadow would refuse are, too: installing packages makes tens
// of thousands. paceCredit may be owed, which is thousands of calls.
const (
	paceShare     = 0.1
	watchingShare = 0.5
	learningShare = 1.0 // many calls, and root asked for that
	paceCredit    = 200 * time.Millisecond
)

func newPace(share float64) *pace {
	return &pace{share: share, at: time.Now(), over: make(chan struct{})}
}

// worked adds what an answer took, and waits if too much is owed.
func (p *pace) worked(took time.Duration) {
	if wait := p.owe(took, time.Now()); wait > 0 {
		select {
		case <-time.After(wait):
		case <-p.over:
		}
	}
}

func (p *pace) owe(took time.Duration, now time.Time) (wait time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.owed = max(0, p.owed-time.Duration(p.share*float64(now.Sub(p.at)))) + took
	p.at = now
	return time.Duration(float64(p.owed-paceCredit) / p.share)
}

func (p *pace) stop() {
	p.lock.Lock()
	defer p.lock.Unlock()
	select {
	case <-p.over:
	default:
		close(p.over)
	}
}

// callOf is a call as a record has it.
func callOf(o observed) *agent.DeniedCall {
	call := &agent.DeniedCall{Name: o.Name, Number: int(o.Number)}
	for _, arg := range o.Args {
		call.Args = append(call.Args, fmt.Sprintf("%#x", arg))
	}
	return call
}
