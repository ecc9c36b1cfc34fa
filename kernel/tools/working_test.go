package tools

import (
	"context"
	"testing"
	"time"
)

// A call whose turn comes behind its deadline is refused at once, and takes no place.
func TestATurnBehindTheDeadline(t *testing.T) {
	t.Parallel()
	w := &working{}
	for range callsBurst {
		leave, err := w.enter(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for range 2 * callsMost {
		if leave, err := w.enter(ctx, "one"); err == nil || leave != nil {
			t.Fatalf("it has a place: %v", err)
		}
	}
	if leave, err := w.enter(t.Context(), "one"); err != nil { // the control
		t.Error(err)
	} else {
		leave()
	}
}
