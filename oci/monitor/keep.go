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
	"clove.run/clove/internal/pidfd"
)

// keeper is one container's, in its own process. Only the goroutine of keep uses
// what changes in it.
type keeper struct {
	directory string
	lock      *os.File // held as long as this process lives
	order     order
	group     *cgroups.Group
	host      *cgroups.Host
	process   *pidfd.Process  // the first; nil: it was gone when the keeper came
	heard     *listener       // nil: another source tells how it ended, or nobody wants to know
	memory    <-chan struct{} // hears of kills for want of memory; nil: they can be counted in the end
	oomKills  int64           // that memory told of
	alarm     *alarm
	fired     <-chan struct{} // the alarm's, until it did
	calls     chan call
	ended     chan end
	leaving   []call // who waits for the keeper's end
	accounting
}

func newKeeper(directory string, held *os.File, o order) *keeper {
	return &keeper{directory: directory, lock: held, order: o, calls: make(chan call), ended: make(chan end, 1),
		accounting: accounting{tried: make(chan attempt, 1), reported: make(chan error, 1), patience: reportPatience}}
}

// end is how the first process ended, and when; the latter is zero where nobody
// held it then.
type end struct {
	status  unix.WaitStatus
	unknown error // why there is no status
	at      time.Time
	boot    time.Duration
}

// errUnheld is why there is no status where nobody held the container.
var errUnheld = errors.New("the container's keeper was killed before it, so nobody knows how it ended")

// arm takes hold of the container, or says why it cannot be held.
func arm(directory string, held *os.File) (*keeper, error) {
	o, found, err := readOrder(directory)
	if err != nil || !found {
		return nil, errors.Join(err, os.ErrNotExist)
	}
	k := newKeeper(directory, held, o)
	if k.process, err = pidfd.OpenStarted(o.Pid, o.PidStart); err != nil && !pidfd.Gone(err) {
		return nil, err
	}
	if k.group, err = cgroups.OpenBundle(o.Cgroups); err != nil {
		return nil, err
	}
	if err := k.listen(); err != nil {
		return nil, err
	}
	if k.host, err = cgroups.Detect(); err != nil {
		return nil, err
	}
	if err := k.host.LeaveV1(); err != nil {
		return nil, err
	}
	if o.Phase == phaseCreated && k.process != nil {
		// Nothing of the container's has executed: what is true now stays so.
		if err := errors.Join(CheckReach(o.Pid), k.group.Only(o.Pid)); err != nil {
			return nil, err
		}
	}
	k.watchMemory()
	if k.alarm, err = newAlarm(); err != nil {
		return nil, err
	}
	if o.Deadline != 0 {
		err = k.alarm.set(o.Deadline)
	}
	return k, err
}

// listen hears of the end from now on, where that is how it is known. Who had
// ended before is not heard of, and its number may be another's.
func (k *keeper) listen() error {
	if k.order.Record == "" || k.order.Source != sourceTaskstats || k.process == nil {
		return nil
	}
	heard, err := listenEnds(k.order.Pid)
	if err != nil && k.order.Phase == phaseCreated {
		return err
	}
	if err != nil {
		k.note(err) // it runs already: its record will say that nobody knows
		return nil
	}
	if k.process.Ended() {
		return heard.close()
	}
	k.heard = heard
	return nil
}

// keep holds the container until it has ended and is accounted for.
func (k *keeper) keep() {
	go func(o order) { k.ended <- k.await(o) }(k.order)
	k.fired = k.alarm.fired
	for !k.accounted() || k.lingers() {
		k.step()
	}
	k.answerLeaving(nil)
}

// step does the next thing that there is to do.
func (k *keeper) step() {
	select {
	case <-k.fired:
		k.expire()
	case e := <-k.ended:
		k.conclude(e)
	case <-k.memory:
		k.countKills(1)
	case c := <-k.calls:
		k.obey(c)
	case <-k.again:
		k.write()
	case a := <-k.tried:
		k.wrote(a)
	case err := <-k.reported:
		k.reporting = false
		k.note(err)
	}
}

// answerLeaving waits until each has its answer: this process ends next.
func (k *keeper) answerLeaving(err error) {
	for _, c := range k.leaving {
		c.answer <- err
		<-c.told
	}
	k.leaving = nil
}

// await waits for the end of the first process, for conclude; o is the order as
// it was. Where no record is asked for it matters to nobody how it ended.
func (k *keeper) await(o order) (e end) {
	if k.process == nil {
		return end{unknown: errUnheld}
	}
	if k.heard != nil {
		k.heard.until(k.process)
	} else {
		k.process.Wait(context.Background())
	}
	e.at = time.Now()
	e.boot, _ = bootTime() // arm's clock worked
	switch {
	case o.Record == "":
	case k.heard != nil:
		e.status, e.unknown = k.heard.ends.status()
	case o.Source == sourceTaskstats:
		e.unknown = errUnheld
	default:
		e.status = status(k.process, o.Pid)
	}
	return e
}

// lingers tells whether processes outlived the first one, as they do without a
// pid namespace of their own: the deadline is theirs too, until the container is
// removed.
func (k *keeper) lingers() bool {
	if k.order.Deadline == 0 || len(k.leaving) > 0 {
		return false
	}
	pids, err := k.group.Pids()
	return err == nil && len(pids) > 0 && k.owns()
}

// owns tells whether the container's directory is still the one that the keeper
// locked: behind another's back its cgroup may be somebody else's by now.
func (k *keeper) owns() bool {
	there, err := os.Stat(k.directory + "/" + lockName)
	if err != nil {
		return false
	}
	ours, err := k.lock.Stat()
	return err == nil && os.SameFile(there, ours)
}

func (k *keeper) obey(c call) {
	switch c.verb {
	case verbStart:
		c.answer <- k.start()
	case verbFinish:
		k.leaving = append(k.leaving, c)
		if k.again != nil {
			k.write() // and it is answered
		}
	default:
		c.answer <- fmt.Errorf("the keeper does not know %q", c.verb)
	}
}

// start counts from the first time that it is asked for. The deadline is on disk
// before it is promised.
func (k *keeper) start() error {
	boot, err := bootTime()
	if err != nil {
		return err
	}
	next := k.order
	if err := next.start(time.Now(), boot); err != nil {
		return err
	}
	if err := next.save(k.directory); err != nil {
		return err
	}
	k.order = next
	if next.Deadline == 0 {
		return nil
	}
	return k.alarm.set(next.Deadline)
}

const (
	killPatience = 30 * time.Second // then it is told in the log
	killPause    = time.Second      // until the next try
)

// expire kills everything in the container's cgroup, as often as it takes: a
// cgroup above that is frozen, or a process that hangs in the kernel, may let go
// only later.
func (k *keeper) expire() {
	k.fired = nil
	// Who was gone by then did not end by it, whatever the killed keeper missed.
	if k.order.Phase == phaseStarted && k.process != nil && !k.process.Ended() {
		k.order.Phase = phaseExpired
		k.note(k.order.save(k.directory)) // without it the record says killed, and no more is lost
	}
	for {
		if k.process != nil {
			// With a pid namespace it takes those with it that left the cgroup.
			_ = k.process.Signal(unix.SIGKILL)
		}
		if !k.owns() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), killPatience)
		err := k.group.Kill(ctx)
		cancel()
		if err == nil {
			return
		}
		k.note(err)
		<-time.After(killPause)
	}
}

func (k *keeper) note(err error) {
	if err != nil && k.owns() { // a removed container needs no word
		log.Print(err)
	}
}
