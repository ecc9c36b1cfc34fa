package monitor

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/cgroups"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/pidfd"
)

// monitor is the monitor of one container. Only the goroutine of run uses what
// changes in it.
type monitor struct {
	directory string
	lock      *os.File // held as long as this process lives
	order     order
	group     *cgroups.Group
	host      *cgroups.Host
	process   *pidfd.Process  // the first; nil: it had ended before the monitor started
	listener  *listener       // nil: the status comes from elsewhere, or is not needed
	memory    <-chan struct{} // reports OOM kills; nil: they can be counted at the end
	unwatch   func()          // ends memory; nil: there is none
	oomKills  int64           // counted by the channel memory
	alarm     *boottime.Alarm
	fired     <-chan struct{} // the alarm's channel; nil after the deadline
	calls     chan pendingRequest
	ended     chan end
	leaving   []pendingRequest // callers that wait for the monitor's end
	accounting
}

// newMonitor makes the channels. Those with room for one value let their goroutine end even
// if the loop has ended before.
func newMonitor(directory string, held *os.File, o order) *monitor {
	return &monitor{directory: directory, lock: held, order: o, calls: make(chan pendingRequest), ended: make(chan end, 1),
		accounting: accounting{tried: make(chan attempt, 1), reported: make(chan error, 1), patience: reportPatience}}
}

// end is how the first process ended, and when; the time is zero if no monitor ran
// then.
type end struct {
	status  unix.WaitStatus
	unknown error // why there is no status
	at      time.Time
	boot    time.Duration
}

// errUnheld is why there is no status when no monitor ran.
var errUnheld = errors.New("the container's monitor was killed before the container ended, so its exit status is unknown")

// arm opens what the monitor needs of the container, and checks that it can enforce
// the deadline.
func arm(directory string, held *os.File) (*monitor, error) {
	o, found, err := readOrder(directory)
	if err != nil || !found {
		return nil, errors.Join(err, os.ErrNotExist)
	}
	m := newMonitor(directory, held, o)
	if m.process, err = pidfd.OpenStarted(o.Pid, o.PidStart); err != nil && !pidfd.Gone(err) {
		return nil, err
	}
	if m.group, err = cgroups.OpenBundle(o.Cgroups); err != nil {
		return nil, err
	}
	if err := m.listen(); err != nil {
		return nil, err
	}
	// On v1 the monitor leaves the cgroups of the engine's shim, in which it would end with
	// the engine's service.
	if m.host, err = cgroups.Detect(); err != nil {
		return nil, err
	}
	if err := m.host.LeaveV1(); err != nil {
		return nil, err
	}
	if o.Phase == phaseCreated && m.process != nil {
		// Nothing of the container has executed yet, so it cannot change what is true now.
		if err := errors.Join(CheckReach(o.Pid), m.group.Only(o.Pid)); err != nil {
			return nil, err
		}
	}
	m.watchMemory()
	if m.alarm, err = boottime.New(); err != nil {
		return nil, err
	}
	if o.Deadline != 0 {
		m.alarm.Set(int64(o.Deadline))
	}
	return m, nil
}

// listen subscribes to the end of the first process, if taskstats is the source. The
// kernel does not report an end before that, and the number may be another process's.
func (m *monitor) listen() error {
	if m.order.Record == "" || m.order.Source != sourceTaskstats || m.process == nil {
		return nil
	}
	listener, err := listenEnds(m.order.Pid)
	if err != nil && m.order.Phase == phaseCreated {
		return err
	}
	if err != nil {
		m.note(err) // it runs already: its record will say that the status is unknown
		return nil
	}
	if m.process.Ended() {
		return listener.close()
	}
	m.listener = listener
	return nil
}

// run enforces the deadline until the container has ended and its record is written.
func (m *monitor) run() {
	go func(o order) { m.ended <- m.await(o) }(m.order)
	defer m.alarm.Close()
	m.fired = m.alarm.Fired
	for !m.accounted() || m.lingers() {
		m.step()
	}
	m.answerLeaving(nil)
}

// step handles one event.
func (m *monitor) step() {
	select {
	case <-m.fired:
		m.expire()
	case e := <-m.ended:
		m.conclude(e)
	case <-m.memory:
		m.countKills(1)
	case c := <-m.calls:
		m.obey(c)
	case <-m.again:
		m.write()
	case a := <-m.tried:
		m.wrote(a)
	case err := <-m.reported:
		m.reporting = false
		m.note(err)
	}
}

// answerLeaving waits until each caller has its answer: this process ends next.
func (m *monitor) answerLeaving(err error) {
	for _, c := range m.leaving {
		c.answer <- err
		<-c.answered
	}
	m.leaving = nil
}

// await waits for the end of the first process, for conclude; o is a copy of the
// order, which changes meanwhile. Without a record the status is not needed.
func (m *monitor) await(o order) (e end) {
	if m.process == nil {
		return end{unknown: errUnheld}
	}
	if m.listener != nil {
		m.listener.until(m.process)
	} else {
		m.process.Wait(context.Background())
	}
	e.at = time.Now()
	e.boot = time.Duration(boottime.NowNS())
	switch {
	case o.Record == "":
	case m.listener != nil:
		e.status, e.unknown = m.listener.ends.status()
	case o.Source == sourceTaskstats:
		e.unknown = errUnheld
	default:
		e.status = status(m.process, o.Pid)
	}
	return e
}

// lingers reports whether processes outlived the first one, as they do without a
// pid namespace of their own: the deadline applies to them too, until the container
// is removed.
func (m *monitor) lingers() bool {
	if m.order.Deadline == 0 || len(m.leaving) > 0 {
		return false
	}
	pids, err := m.group.Pids()
	return err == nil && len(pids) > 0 && m.owns()
}

// owns reports whether the container's directory is still the one that the monitor
// locked. If not, the container was removed, and the cgroup's path may belong to a
// newer one.
func (m *monitor) owns() bool {
	there, err := os.Stat(m.directory + "/" + lockName)
	if err != nil {
		return false
	}
	ours, err := m.lock.Stat()
	return err == nil && os.SameFile(there, ours)
}

// obey answers a start at once. A finish is answered when the record is written, and this
// process ends next.
func (m *monitor) obey(c pendingRequest) {
	switch c.verb {
	case verbStart:
		c.answer <- m.start()
	case verbFinish:
		m.leaving = append(m.leaving, c)
		if m.again != nil {
			m.write() // the caller gets the result of this attempt
		}
	default:
		c.answer <- fmt.Errorf("the monitor does not know %q", c.verb)
	}
}

// start begins the deadline; a second call does not move it. The deadline is on disk
// before the caller has its answer, so that a killed monitor does not lose it.
func (m *monitor) start() error {
	next := m.order
	if err := next.start(time.Now(), time.Duration(boottime.NowNS())); err != nil {
		return err
	}
	if err := next.save(m.directory); err != nil {
		return err
	}
	m.order = next
	if next.Deadline != 0 {
		m.alarm.Set(int64(next.Deadline))
	}
	return nil
}

const (
	killPatience = 30 * time.Second // after this a failed kill is logged
	killPause    = time.Second      // between two attempts
)

// expire kills everything in the container's cgroup, as often as it takes: a
// cgroup above that is frozen, or a process that hangs in the kernel, may let go
// only later.
func (m *monitor) expire() {
	m.fired = nil
	// A process that had ended before did not end by the deadline, also if a killed
	// monitor missed its end.
	if m.order.Phase == phaseStarted && m.process != nil && !m.process.Ended() {
		m.order.Phase = phaseExpired
		m.note(m.order.save(m.directory)) // if it cannot be saved, the record says killed instead of timeout
	}
	for {
		if m.process != nil {
			// The end of a pid namespace's first process also kills those that left the cgroup.
			_ = m.process.Signal(unix.SIGKILL)
		}
		if !m.owns() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), killPatience)
		err := m.group.Kill(ctx)
		cancel()
		if err == nil {
			return
		}
		m.note(err)
		<-time.After(killPause)
	}
}

// note writes to keeper.log in the container's directory.
func (m *monitor) note(err error) {
	if err != nil && m.owns() { // no process reads the log of a removed container
		log.Print(err)
	}
}
