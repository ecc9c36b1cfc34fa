package bounded

import "sync"

// Bytes is a number of bytes that are free. Where more is asked for than is left, the request is
// refused at once: there is no queue.
type Bytes struct {
	mu   sync.Mutex // guards free
	free int64
}

// NewBytes makes one of which all is free.
func NewBytes(bytes int64) *Bytes { return &Bytes{free: bytes} }

// Take takes n bytes, or reports that fewer are left.
func (b *Bytes) Take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.free {
		return false
	}
	b.free -= n
	return true
}

// Give gives back what Take took.
func (b *Bytes) Give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
}
