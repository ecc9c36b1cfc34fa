package service

import (
	"errors"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// moment is the longest time between two waits of an agent that count as one. What an agent does in a longer one is
// work.
const moment = time.Second

// activity is what the calls of an agent say of it, for agent.Kernel.Idle: it is idle while it has calls that only
// wait for work, and no others. Of a nil activity nothing is noted.
type activity struct {
	most time.Duration // then over is called, in a goroutine of its own
	over func()

	mu     sync.Mutex    // guards the following
	open   int           // calls that are not answered
	waits  int           // of them, those that have found nothing and only wait for work
	since  time.Time     // when all open calls began only to wait; zero: they do not
	before time.Duration // it had waited before since, without work in between
	rested time.Time     // when its last wait ended
	timer  *time.Timer   // calls over; nil: since is zero
	ending bool          // it gets no more work
}

// begins notes a call. idles: of a method that waits for work.
func (a *activity) begins(idles bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pause()
	a.open++
	if !idles {
		a.before = 0
	}
}

// rests notes that a call has found no work, and waits for it until concludes.
func (a *activity) rests() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits++
	a.goOn()
}

// concludes notes the end of a call: rested says that it was noted by rests, nothing that it has brought no work.
func (a *activity) concludes(rested, nothing bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pause()
	a.open--
	if rested {
		a.waits--
	}
	if !nothing {
		a.before = 0
	}
	a.goOn()
}

// pause ends the time in which all calls only wait. a.mu is held.
func (a *activity) pause() {
	if a.since.IsZero() {
		return
	}
	a.timer.Stop()
	a.rested = time.Now()
	a.before, a.since, a.timer = a.before+a.rested.Sub(a.since), time.Time{}, nil
}

// goOn begins the time in which all calls only wait, if they do. a.mu is held.
func (a *activity) goOn() {
	if a.open == 0 || a.waits < a.open || !a.since.IsZero() {
		return
	}
	a.since = time.Now()
	if a.since.Sub(a.rested) > moment {
		a.before = 0
	}
	a.timer = time.AfterFunc(a.most-a.before, a.over)
}

// anew begins to count from 0: the agent is not idle. It gets work again.
func (a *activity) anew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pause()
	a.before, a.ending = 0, false
	a.goOn()
}

// ends has the agent get no more work, if it has waited long enough and still does.
func (a *activity) ends() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ending = !a.since.IsZero() && a.before+time.Since(a.since) >= a.most
	return a.ending
}

func (a *activity) isEnding() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending
}

// Idles makes a method that waits one that waits for work: a run whose agent has only such calls is idle, and one
// that is ended for it gets nothing of them any more.
func (m Method) Idles() Method {
	m.idles = true
	do := m.do
	m.do = func(c *Call, params any) (any, Outcome, error) {
		// Within the transaction: what it finds is from before that of EndIdle, which then has found it too.
		if c.activity.isEnding() {
			return nil, Outcome{}, ErrNotYet
		}
		return do(c, params)
	}
	return m
}

// foundNothing reports whether a wait has ended without an answer.
func foundNothing(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && (e.Code == api.CodeCancelled || e.Data.Rule == api.RuleWithin)
}

// errBusy ends the transaction of EndIdle, of a run that is not idle.
var errBusy = errors.New("the run is not idle")

// EndIdle decides whether a run ends because its agent has only waited for the time of its spec. busy reports whether
// there is something for it to do all the same. Once it has returned true the agent gets no more work, until Resume.
func EndIdle(e *Engine, run agent.Run, busy func(*Call) (bool, error)) (ends bool, err error) {
	a := e.attachmentOf(run.Spec.ID)
	if a == nil || a.activity == nil {
		return false, nil
	}
	err = e.Within(run, "idle", "", func(c *Call) (out Outcome, err error) {
		is, err := busy(c)
		if err == nil && (is || !a.activity.ends()) {
			err = errBusy
		}
		entry := c.Entry("run.idle", run.Spec.Name, "allow")
		if err == nil {
			err = Record(c.Tx, entry)
		}
		return out, err
	})
	if err != nil {
		Resume(e, run.Spec.ID)
	}
	if errors.Is(err, errBusy) {
		return false, nil
	}
	return err == nil, err
}

// Resume gives the agent of a run work again that EndIdle has decided to end.
func Resume(e *Engine, run agent.ID) {
	a := e.attachmentOf(run)
	if a == nil || a.activity == nil {
		return
	}
	a.activity.anew()
	e.topics.again(run)
}
