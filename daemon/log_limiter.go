package daemon

import (
	"sync"
	"time"
)

// logPause is between two lines about an error that stays. A line each minute shows that it
// is still there.
const logPause = time.Minute

// logLimiter bounds the lines about one operation that may go on failing: a store
// without space fails every two seconds, for days, and the log must not help to
// fill the disk.
type logLimiter struct {
	mu   sync.Mutex // guards the following
	text string     // of the last error; empty: it works
	last time.Time  // when it was logged
}

// worth reports whether to log err: it is another one than the last, or that was
// logged a while ago. A nil err means that the operation works again.
func (l *logLimiter) worth(err error, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.text = ""
		return false
	}
	if err.Error() == l.text && now.Sub(l.last) < logPause {
		return false
	}
	l.text, l.last = err.Error(), now
	return true
}
