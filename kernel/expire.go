package kernel

import (
	"cmp"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/mail"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// expireEvery is how often expired messages become dead letters of mailboxes to which nothing is sent.
const expireEvery = time.Minute

// alarm calls a function when the first of the times that it gets has come, and at least once in expireEvery.
type alarm struct {
	now   func() time.Time
	do    func() (next time.Time) // zero: it has nothing to do later
	news  chan struct{}           // has an element while sooner is new
	stop  chan struct{}
	ended sync.WaitGroup

	mu     sync.Mutex // guards the following
	sooner time.Time  // the first time since the last look; zero: none came
}

func newAlarm(now func() time.Time, do func() time.Time) *alarm {
	a := &alarm{now: now, do: do, news: make(chan struct{}, 1), stop: make(chan struct{})}
	a.ended.Go(a.serve)
	return a
}

// set has the function called at a time, or before. It does not block.
func (a *alarm) set(at time.Time) {
	if at.IsZero() {
		return
	}
	a.mu.Lock()
	if a.sooner.IsZero() || at.Before(a.sooner) {
		a.sooner = at
	}
	a.mu.Unlock()
	select {
	case a.news <- struct{}{}:
	default:
	}
}

func (a *alarm) taken() (sooner time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sooner, a.sooner = a.sooner, time.Time{}
	return sooner
}

func (a *alarm) serve() {
	at := a.now()
	for {
		timer := time.NewTimer(min(max(0, at.Sub(a.now())), expireEvery))
		select {
		case <-a.news:
			if sooner := a.taken(); !sooner.IsZero() && sooner.Before(at) {
				at = sooner
			}
		case <-timer.C:
			at = a.now().Add(expireEvery)
			if next := a.do(); !next.IsZero() && next.Before(at) {
				at = next
			}
		case <-a.stop:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (a *alarm) end() { close(a.stop); a.ended.Wait() }

// due does what time does to what agents share, and returns when there is more of it.
func (k *Kernel) due() time.Time {
	_ = k.expireMail() // tried again at the next call
	next, err := k.jobs.Tick(k.engine)
	if err == nil && k.starts.Load() {
		var again time.Time
		if again, err = k.jobs.Begin(k.engine); next.IsZero() || !again.IsZero() && again.Before(next) {
			next = again
		}
	}
	if err == nil && k.starts.Load() && k.names.Starter != nil {
		var again time.Time
		if again, err = k.names.Begin(k.engine); next.IsZero() || !again.IsZero() && again.Before(next) {
			next = again
		}
	}
	if soon, aerr := k.asks.Tick(k.engine); !soon.IsZero() && (next.IsZero() || soon.Before(next)) {
		next, err = soon, cmp.Or(err, aerr)
	}
	err = cmp.Or(err, k.engine.Resume())
	if err != nil { // the disk is full, or it is tried again for another reason
		return k.engine.Now().Add(time.Second)
	}
	return next
}

// expireMail makes dead letters of all messages that have expired.
func (k *Kernel) expireMail() (err error) {
	for now := k.engine.Now(); ; {
		var due []lease.Of
		err = k.engine.Read(func(tx *store.KernelTx) error {
			due, err = lease.Due(tx, now)
			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}
		err = k.engine.Within(agent.Run{}, "mail", "", func(c *service.Call) (out service.Outcome, err error) {
			for _, box := range due {
				if err := lease.Expire(c.Tx, box, now); err != nil {
					return out, err
				}
				out.Topics = append(out.Topics, mail.Room(box.Owner))
			}
			return out, nil
		})
		if err != nil || len(due) < lease.DueMost {
			return err
		}
	}
}
