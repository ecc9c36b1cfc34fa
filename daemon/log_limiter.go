package daemon

import (
	"sync"
	"time"
)

// logPause is how often an error that stays is told again.
const logPause = time.Minute

// logLimiter is one thing that may go on failing: a store without space fails
// every two seconds, for days, and the log must not help to fill the disk.
type logLimiter struct {
	mu   sync.Mutex // guards the following
	text string     // of the last error; empty: it works
	told time.Time
}

// worth tells whether err should be told: it is another one than the last, or
// that was told a while ago. nil says that it works again.
func (c *logLimiter) worth(err error, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.text = ""
		return false
	}
	if err.Error() == c.text && now.Sub(c.told) < logPause {
		return false
	}
	c.text, c.told = err.Error(), now
	return true
}
