//go:build root

package socket

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api/agents"
	"clove.run/clove/internal/testhost"
)

// Half a line of the sandbox's and half of another user's are no call, in either order, and
// the connection ends. The control is the same line in halves of one sender.
func TestALineHasOneSender(t *testing.T) {
	testhost.Root(t)
	const first, second = `{"jsonrpc":"2.0","id":1,`, `"method":"agent.get"}` + "\n"
	own := uint32(os.Getuid())
	for _, senders := range [][2]uint32{{own, own}, {own, 64001}, {64001, own}, {64001, 64001}} {
		r := newRig(t)
		p := r.dial()
		for i, text := range []string{first, second} {
			as := unix.UnixCredentials(&unix.Ucred{Pid: int32(os.Getpid()), Uid: senders[i], Gid: 0})
			_, _, _ = p.WriteMsgUnix([]byte(text), as, nil) // the connection may have ended
		}
		if senders == [2]uint32{own, own} {
			c := r.call()
			if c.Method != agents.AgentGet.Name {
				t.Errorf("%+v", c)
			}
			r.answer(c.Number, "{}")
			p.wantResult("1", "{}")
			continue
		}
		if n := p.wantEnd(); n != 0 {
			t.Errorf("%d: %d bytes were answered", senders, n)
		}
		r.wantNothing()
	}
}
