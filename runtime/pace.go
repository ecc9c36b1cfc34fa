package runtime

import (
	"sync"
	"time"
)

// pace bounds the processor time with which a run's calls are answered. It is the
// supervisor's, so no limit of the agent bounds it. A caller that is answered late waits;
// nobody else does.
type pace struct {
	share float64 // of one processor, paid off all the time
	lock  sync.Mutex
	owed  time.Duration // worked and not yet paid off by time
	at    time.Time     // when owed was right
	over  chan struct{} // closed: nobody waits any more
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
