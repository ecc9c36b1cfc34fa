package logs

import (
	"bytes"
	"sync"

	"clove.run/clove/api"
)

// Calls is a log of calls: each is written whole, so that those at the same time do not mix.
type Calls struct {
	log *Log
	mu  sync.Mutex // held while a call is written
}

// OpenCalls makes or continues a log as Open does.
func OpenCalls(dir string, capBytes int64) (*Calls, error) {
	log, err := Open(dir, capBytes)
	if err != nil {
		return nil, err
	}
	return &Calls{log: log}, nil
}

// Add writes one call: a line of clove's own, and the lines of the request and the answer. It
// never fails: lines that cannot be written are counted.
func (c *Calls) Add(title string, request, answer []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(api.StreamClove, []byte(title))
	c.add(api.StreamRequest, request)
	c.add(api.StreamAnswer, answer)
}

// add ends the last line, which in JSON has no end: readers would continue it.
func (c *Calls) add(stream string, text []byte) {
	lines := c.log.Stream(stream)
	_, _ = lines.Write(text) // it never fails
	if len(text) > 0 && !bytes.HasSuffix(text, []byte{'\n'}) {
		_, _ = lines.Write([]byte{'\n'})
	}
}

// Close ends the log.
func (c *Calls) Close() error { return c.log.Close() }
