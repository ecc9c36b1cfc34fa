package route

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A name without calls has the floor, and each fifth call allows one more. Another name, and
// another minute, have their own.
func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	var r Retries
	taken := func(name string, at time.Time) (n int) {
		for r.Take(name, at) {
			n++
		}
		return n
	}
	if n := taken("a", now); n != Floor {
		t.Errorf("%d without calls", n)
	}
	for range 10*Share - 1 {
		r.Called("a", now)
	}
	if n := taken("a", now.Add(Window-1)); n != 9 {
		t.Errorf("%d more", n)
	}
	if n := taken("b", now); n != Floor {
		t.Errorf("control: %d of another name", n)
	}
	if n := taken("a", now.Add(Window)); n != Floor {
		t.Errorf("%d in the next minute", n)
	}
	if n := taken("b", now.Add(-time.Hour)); n != Floor {
		t.Errorf("%d when the clock was set back", n)
	}
}

// Whatever comes: in no minute are there more than the floor and a share of its calls, and
// nothing is kept of names without calls.
func TestRetriesInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r Retries
		at, began, calls, retries := now, now, 0, 0
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(0, int(Window/20)).Draw(t, "time")))
			if at.Sub(began) >= Window {
				began, calls, retries = at, 0, 0
			}
			if rapid.Bool().Draw(t, "call") {
				r.Called("a", at)
				calls++
			} else if r.Take("a", at) {
				retries++
			}
			if retries > Floor+calls/Share {
				t.Fatalf("%d retries of %d calls", retries, calls)
			}
		}
		r.Called("b", at.Add(2*Window))
		if len(r.counts) != 1 {
			t.Fatalf("%d names are kept", len(r.counts))
		}
	})
}
