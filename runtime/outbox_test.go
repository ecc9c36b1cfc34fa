package runtime

import (
	"errors"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
)

func TestAnOutboxKeepsTheOrderAndDoesAll(t *testing.T) {
	t.Parallel()
	o := newOutbox(1)
	var done []int
	stopped := errors.New("stopped")
	for n := range 100 {
		o.put(func() { done = append(done, n) })
	}
	err := o.until(func() error { o.put(func() { done = append(done, 100) }); return stopped })
	if err != stopped || len(done) != 101 {
		t.Fatalf("%v, %d done", err, len(done))
	}
	for n, got := range done {
		if n != got {
			t.Fatalf("%d came in place %d", got, n)
		}
	}
}

// TestAReaderThatDoesNotReadHoldsNoEndUp: the reader is a stopped terminal, or a pipe.
func TestAReaderThatDoesNotReadHoldsNoEndUp(t *testing.T) {
	t.Parallel()
	o := newOutbox(1)
	read := make(chan struct{})
	for range 2 { // one is being written, one waits
		o.put(func() { <-read })
	}
	began := time.Now()
	if err := o.until(func() error { o.put(func() {}); return nil }); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < outboxPatience || took > testhost.Patience(4*outboxPatience) {
		t.Errorf("it took %s", took)
	}
	close(read)
	<-o.ended // and the goroutine ends
}
