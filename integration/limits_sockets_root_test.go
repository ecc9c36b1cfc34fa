//go:build root

package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// socketBomb leaves argv[2] MiB unread in sockets of the kind argv[1], prints the number of
// bytes, and with argv[3] waits to be ended.
const socketBomb = `
import signal, socket, struct, sys
kind, want = sys.argv[1], int(sys.argv[2]) << 20
keep, held = [], 0

def netlink():
    # RTM_GETLINK of the first interface: each answer waits in the receiving queue.
    ask = struct.pack("IHHII", 32, 18, 5, 1, 0) + struct.pack("BxHiII", 0, 0, 1, 0, 0)
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30)
    for _ in range(200):
        s.send(ask)
    keep.append(s)
    lines = open("/proc/self/net/netlink").read().splitlines()[1:]
    return sum(int(line.split()[4]) for line in lines)

def tcp():
    server = socket.create_server(("127.0.0.1", 0))
    s = socket.create_connection(server.getsockname())
    keep.extend([server, server.accept()[0], s])
    s.setblocking(False)
    sent = 0
    try:
        while sent < want:
            sent += s.send(bytes(65536))
    except BlockingIOError:
        pass
    return held + sent

def udp():
    taker, s = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
    taker.bind(("127.0.0.1", 0))
    for _ in range(20):
        s.sendto(bytes(30000), taker.getsockname())
    keep.append(taker)
    return held

def unread():
    total = 0
    for s in keep:
        s.setblocking(False)
        try:
            while True:
                total += len(s.recv(65536))
        except OSError:
            pass
    return total

for _ in range(700):
    if held >= want:
        break
    held = {"netlink": netlink, "tcp": tcp, "udp": udp}[kind]()
print(unread() if kind == "udp" else held, flush=True)
if len(sys.argv) > 3:
    signal.alarm(60)
    signal.pause()
`

// unread parses the bomb's output.
func unread(t *testing.T, r result) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(r.stdout), 10, 64)
	if err != nil {
		t.Fatalf("%v: %+v\n%s", err, r.record, r.stderr)
	}
	return n
}

// TestNetlinkQueuesEndTheAgent: the kernel charges these queues to no cgroup. The control is
// the same bomb with a memory limit whose quarter is larger.
func TestNetlinkQueuesEndTheAgent(t *testing.T) {
	h := newHost(t)
	control := h.agent([]string{"--memory", "512M"}, python, "-c", socketBomb, "netlink", "48")
	if control.want(t, agent.StatusExited, 0, control.stdout); unread(t, control) < 48<<20 {
		t.Fatal("control: the bomb does no harm where there is room for it")
	}
	if peak := control.record.Usage.MemoryPeakBytes; peak == nil || *peak > 48<<20 {
		t.Errorf("control: the kernel counts netlink queues now: %s", show(peak))
	}
	r := h.agent([]string{"--memory", "64M"}, python, "-c", socketBomb, "netlink", "48", "stay")
	if r.want(t, agent.StatusOOM, agent.ExitKilled, r.stdout); t.Failed() {
		return
	}
	hit := r.record.Limit
	if hit == nil || hit.Name != agent.ControlSockets || hit.Value != 16<<20 || hit.Peak == nil || *hit.Peak <= hit.Value {
		t.Errorf("the record says %+v", hit)
	}
	if kills := r.record.Events.OOMKill; kills == nil || *kills != 0 {
		t.Errorf("the kernel is said to have killed %s processes", show(kills))
	}
	if r.record.Enforced[agent.ControlSockets] == "" || !strings.Contains(r.stderr, "unread in sockets") {
		t.Errorf("enforced %v\n%s", r.record.Enforced, r.stderr)
	}
}

// TestSocketBuffersAreHeld: on v1 the memory limit does not count them. The control is the
// same bomb with a memory limit whose quarter is larger; on v2 they count as memory.
func TestSocketBuffersAreHeld(t *testing.T) {
	h := newHost(t)
	if testhost.Cgroup() == "v2" {
		r := h.agent([]string{"--memory", "64M"}, python, "-c", socketBomb, "tcp", "64")
		if r.record.Status != agent.StatusOOM && unread(t, r) > 64<<20 {
			t.Errorf("%+v", r.record)
		}
		return
	}
	for kind, control := range map[string]int64{"tcp": 60 << 20, "udp": 40 << 20} {
		r := h.agent([]string{"--memory", "1G"}, python, "-c", socketBomb, kind, "64")
		if got := unread(t, r); got < control {
			t.Fatalf("control: %s: %d bytes wait in sockets", kind, got)
		}
	}
	// Datagrams are dropped.
	r := h.agent([]string{"--memory", "64M"}, python, "-c", socketBomb, "udp", "64")
	if got := unread(t, r); got < 1<<20 || got > 8<<20 {
		t.Errorf("udp: %d bytes wait in sockets, want at most 8 MiB", got)
	}
	r.want(t, agent.StatusExited, 0, fmt.Sprintf("%d\n", unread(t, r)))
	// A connection is slow, and works: a few connections get the memory that they need.
	r = h.agent([]string{"--memory", "64M"}, python, "-c", strings.ReplaceAll(socketBomb, "range(700)", "range(50)"), "tcp", "64")
	if got := unread(t, r); got < 1<<20 || got > 12<<20 {
		t.Errorf("tcp: %d bytes wait in sockets, want about 8 MiB", got)
	}
	r.want(t, agent.StatusExited, 0, fmt.Sprintf("%d\n", unread(t, r)))
	// Each may hold one message whatever the limit, so many of them end the agent.
	r = h.agent([]string{"--memory", "64M"}, python, "-c", socketBomb, "tcp", "64", "stay")
	if r.want(t, agent.StatusOOM, agent.ExitKilled, r.stdout); t.Failed() {
		return
	}
	if hit := r.record.Limit; hit == nil || hit.Name != agent.ControlSockets || hit.Value != 16<<20 || hit.Peak == nil || *hit.Peak <= hit.Value {
		t.Errorf("the record says %+v", hit)
	}
}

// TestSocketsHoldNoKeys: each TCP signing key is memory that no cgroup is charged for. The
// control is an option that the same socket accepts.
func TestSocketsHoldNoKeys(t *testing.T) {
	h := newHost(t)
	r := h.agent(nil, python, "-c", `
import socket
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for option in 14, 32, 38:  # TCP_MD5SIG, TCP_MD5SIG_EXT, TCP_AO_ADD_KEY
    try:
        s.setsockopt(socket.IPPROTO_TCP, option, bytes(400))
        print("taken")
    except OSError as e:
        print(e.errno)
`)
	r.want(t, agent.StatusExited, 0, "1\n1\n1\n")
}
