package supervisor

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// soon fails the test if done is not closed in time.
func soon(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(what)
	}
}

// doing runs f beside the test, and returns a channel that is closed when f has ended.
func doing(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	return done
}

func full(h *host) {
	for range queued {
		_ = h.say(api.SessionOutput{Stream: stdout, Data: []byte("x")})
	}
}

// Output that is written before the host connects, and while it does not read, waits for it. The
// control is a listener, which loses it.
func TestHostMissesNothing(t *testing.T) {
	t.Parallel()
	h := &hub{listeners: map[*listener]bool{}, host: newHost()}
	l := h.join()
	const many = queued * 3
	written := doing(func() {
		for i := range many {
			if _, err := (hubWriter{h, stdout}).Write([]byte{byte(i)}); err != nil {
				t.Error(err)
			}
		}
		h.host.over.set()
	})
	if !h.host.take() || h.host.take() {
		t.Error("it is not one that takes it")
	}
	got := 0
	for piece, more := h.host.next(); more; piece, more = h.host.next() {
		if len(piece.Data) != 1 || piece.Data[0] != byte(got) {
			t.Fatalf("piece %d is %v", got, piece.Data)
		}
		got++
	}
	soon(t, "it still writes", written)
	if got != many || len(l.pieces) != queued {
		t.Errorf("the host has %d of %d, a listener %d", got, many, len(l.pieces))
	}
}

// A writer that waits for the host continues when the host has gone, when no caller waits for
// the output any longer, and with EPIPE when the host has closed that stream. Notifications to the
// host never wait.
func TestNoWriterWaitsForAHostThatIsGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		end  func(*host)
		want error
	}{
		{"it has gone", func(h *host) { h.left.set() }, nil},
		{"its time is over", func(h *host) { h.hasty.set() }, nil},
		{"its reader has gone", func(h *host) { h.stopReading("other"); h.stopReading(stdout); h.stopReading(stdout) }, unix.EPIPE},
	} {
		h := newHost()
		full(h)
		h.denied(agent.Denial{}, "", "")
		h.warned(api.Budget{})
		h.paused(api.Budget{}, time.Time{})
		var err error
		said := doing(func() { err = h.say(api.SessionOutput{Stream: stdout}) })
		c.end(h)
		soon(t, c.what, said)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	h := newHost()
	waited := doing(h.await)
	h.hasty.set()
	soon(t, "it waits for a host that it must not wait for", waited)
}

// clove's own messages come in order, in place of output.
func TestAHostGetsWhatIsSaidOfBudgets(t *testing.T) {
	t.Parallel()
	h, at := newHost(), time.Unix(1_800_000_000, 0)
	h.warned(api.Budget{Dimension: "tokens"})
	h.paused(api.Budget{Dimension: "reviews"}, at)
	first, _ := h.next()
	second, _ := h.next()
	if b := first.Budget; b == nil || b.Dimension != "tokens" || b.Paused || first.Data != nil {
		t.Errorf("%+v", first)
	}
	if b := second.Budget; b == nil || b.Dimension != "reviews" || !b.Paused || !b.Timeout.Equal(at) {
		t.Errorf("%+v", second)
	}
}

// The other stream continues.
func TestHostReadsOneStream(t *testing.T) {
	t.Parallel()
	h := newHost()
	h.stopReading(stderr)
	if err := h.say(api.SessionOutput{Stream: stdout}); err != nil {
		t.Error(err)
	}
	if err := h.say(api.SessionOutput{Stream: stderr}); !errors.Is(err, unix.EPIPE) {
		t.Error(err)
	}
}
