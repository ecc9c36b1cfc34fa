package runtime

import (
	"sync"
	"time"
)

// pace bounds the processor time with which a run's calls are answered. It is the
// supervisor's, so no limit of the agent bounds it. A caller that is answered late waits;
// nobody else does.
type pace struct {
	lock sync.Mutex
	owed time.Duration // worked and not yet paid off by time
	at   time.Time     // when owed was right
	over chan struct{} // closed: nobody waits any more
}

// paceShare of one processor is paid off all the time, and paceCredit may be owed: thousands
// of calls, which is more than a program makes that probes what it may do.
const (
	paceShare  = 0.1
	paceCredit = 200 * time.Millisecond
)

func newPace() *pace { return &pace{at: time.Now(), over: make(chan struct{})} }

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
	p.owed = max(0, p.owed-time.Duration(paceShare*float64(now.Sub(p.at)))) + took
	p.at = now
	return time.Duration(float64(p.owed-paceCredit) / paceShare)
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
