//go:build root

package netns

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// leaveUnread requests the first interface from the kernel, and does not read the answer.
func leaveUnread(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	// struct nlmsghdr and ifinfomsg: RTM_GETLINK, NLM_F_REQUEST and NLM_F_ACK, index 1.
	ask := make([]byte, 32)
	ask[0], ask[4], ask[6], ask[20] = 32, unix.RTM_GETLINK, unix.NLM_F_REQUEST|unix.NLM_F_ACK, 1
	if err := unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		t.Fatal(err)
	}
}

func queuesOfThread(t *testing.T, n *Namespace) *Queues {
	t.Helper()
	var q *Queues
	err := n.do(func() (err error) { q, err = OpenQueues(unix.Gettid()); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// TestQueuesAreOfOneNamespace: each reading is current. The control is another namespace.
func TestQueuesAreOfOneNamespace(t *testing.T) {
	prepare(t)
	one, other := made(t, Plan{}), made(t, Plan{})
	q, control := queuesOfThread(t, one), queuesOfThread(t, other)
	if held, err := q.Bytes(); err != nil || held != 0 {
		t.Fatalf("before: %d, %v", held, err)
	}
	if err := one.do(func() error { leaveUnread(t); return nil }); err != nil {
		t.Fatal(err)
	}
	if held, err := q.Bytes(); err != nil || held < 512 {
		t.Errorf("an answer waits: %d, %v", held, err)
	}
	if held, err := control.Bytes(); err != nil || held != 0 {
		t.Errorf("control: %d, %v", held, err)
	}
}

// TestOptionsAreBounded: if the bound belongs to a namespace, since Linux 6.8.
func TestOptionsAreBounded(t *testing.T) {
	prepare(t)
	err := made(t, Plan{}).do(func() error {
		const path = "/proc/sys/net/core/optmem_max"
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			t.Log("it is the host's alone here")
			return nil
		}
		if bound, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || bound > optionBytes {
			t.Errorf("%s is %q, %v", path, text, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
