package socket

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api/agents"
)

// A line that does not end within lineTime ends its connection, also one whose beginning came
// with the line before. The control is a connection on which no line has begun: it may stay
// silent.
func TestALineThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	silent, half, behind := r.dial(), r.dial(), r.dial()
	began := time.Now()
	_, err := half.Write([]byte("{"))
	must(t, err)
	r.works(silent)
	_, err = behind.Write([]byte(request(1, agents.AgentListen.Name, "{}") + "\n{\"jsonrpc\":"))
	must(t, err)
	behind.wantResult("1", "{}")
	_, err = behind.Write([]byte("\"2.0\"")) // it goes on, slowly
	must(t, err)
	for _, p := range []*peer{half, behind} {
		if n := p.wantEnd(); n != 0 && p == half {
			t.Errorf("%d bytes were answered", n)
		}
	}
	if took := time.Since(began); took < lineTime {
		t.Errorf("they ended after %s", took)
	}
	r.works(silent)
}

// A client that reads nothing loses its connection within writeTime, also if little waits for
// it, and its place is free.
func TestAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow := r.dial()
	answer := `{"text":"` + strings.Repeat("x", 60<<10) + `"}`
	const calls = 7 // more than its socket's buffer holds, less than what maxWaiting adds
	for i := range calls {
		slow.ask(i)
		r.answer(r.call().Number, answer)
	}
	raw, err := slow.SyscallConn()
	must(t, err)
	ended := 0
	must(t, raw.Control(func(fd uintptr) {
		all := []unix.PollFd{{Fd: int32(fd)}} // POLLHUP is always reported
		for err = unix.EINTR; err == unix.EINTR; {
			ended, err = unix.Poll(all, int(patience.Milliseconds()))
		}
	}))
	if ended != 1 || err != nil {
		t.Errorf("its connection goes on: %v", err)
	}
	r.works(r.dial())
}
