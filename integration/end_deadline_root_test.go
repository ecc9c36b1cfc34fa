//go:build root

package integration

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// stubborn is a process tree in which no process ends when asked: ignored signals, a daemon
// (double fork, setsid), a stopped process, and one that its sibling traces. Each holds the
// lifeline, and the daemon writes to it.
var stubborn = holdLifeline + `
trap '' TERM HUP INT QUIT
beat() { while :; do echo beat >&9; sleep 0.02; done; }
(setsid sh -c 'while :; do echo beat >&9; sleep 0.02; done' &) &
(sh -c 'kill -STOP $$; sleep 1000' &) &
(setsid sleep 1000 &) &
` + fmt.Sprintf(`perl -e 'if (fork) { sleep 1000 } else { syscall(%d, 0, 0, 0, 0) == 0 or die "ptrace: $!"; exec "sleep", "1000" }' &`, unix.SYS_PTRACE) + `
wait_for() { until grep -qs "$1" /proc/[0-9]*/stat; do sleep 0.02; done; }
wait_for '(sh) T'; wait_for '(sleep) t\|(perl) t'
echo ready
beat`

// TestNobodyOutlivesTheDeadline: the control is the same tree without a deadline, which still
// writes when the other has ended.
func TestNobodyOutlivesTheDeadline(t *testing.T) {
	h := newHost(t)
	control := newLifeline(t)
	began := time.Now()
	free := h.start([]string{control.flag()}, "sh", "-c", stubborn)
	if line := free.line(); line != "ready" {
		t.Fatalf("the control says %q\n%s", line, &free.stderr)
	}
	held := newLifeline(t)
	// The other tree, too, must have started before its deadline.
	limit := max(1500*time.Millisecond, 8*time.Since(began)).Round(100 * time.Millisecond)
	bounded := h.start([]string{"--timeout", limit.String(), "--stop-timeout=200ms", held.flag()}, "sh", "-c", stubborn)
	if line := bounded.line(); line != "ready" {
		t.Fatalf("the agent says %q\n%s", line, &bounded.stderr)
	}
	r := bounded.wait()
	held.gone(atOnce) // clove itself waited for their end
	if r.code != agent.ExitTimeout || r.record.Status != agent.StatusTimeout {
		t.Errorf("got %s, exit %d\n%s", r.record.Status, r.code, r.stderr)
	}
	if l := r.record.Limit; l == nil || l.Name != agent.ControlWallClock || l.Value != limit.Milliseconds() || l.Peak == nil || *l.Peak < l.Value {
		t.Errorf("limit: %+v", l)
	}
	if wall := r.record.WallMS; wall < limit.Milliseconds() || wall > patience().Milliseconds() {
		t.Errorf("it ran %d ms, allowed are %v", wall, limit)
	}
	if !strings.Contains(r.stderr, "wall clock limit of "+limit.String()) || !strings.Contains(r.stderr, "--timeout") {
		t.Errorf("no line says why it ended: %q", r.stderr)
	}
	control.beats()
	free.cmd.Process.Signal(unix.SIGHUP) // ignored by all of them
	control.beats()
	free.cmd.Process.Kill()
	free.cmd.Wait()
	control.gone(2 * time.Second)
	h.clove("gc")
}

// TestTheDeadlineAsksFirst: TERM, then the grace period. Control: without the trap, TERM
// itself ends the agent.
func TestTheDeadlineAsksFirst(t *testing.T) {
	h := newHost(t)
	var polite result
	// If the deadline comes before the trap is set, the agent prints nothing.
	for limit := 300 * time.Millisecond; !strings.HasPrefix(polite.stdout, "ready\n") && limit < patience(); limit *= 2 {
		polite = h.sh(`trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.02; done`, "--timeout", limit.String(), "--stop-timeout=1m")
	}
	polite.want(t, agent.StatusTimeout, agent.ExitTimeout, "ready\nasked\n")
	if polite.record.Signal != nil {
		t.Errorf("it ended by itself, the record says %s", *polite.record.Signal)
	}
	plain := h.agent([]string{"--timeout=300ms", "--stop-timeout=1m"}, "sleep", "1000")
	plain.want(t, agent.StatusTimeout, agent.ExitTimeout, "")
	if plain.record.Signal == nil || *plain.record.Signal != "SIGTERM" {
		t.Errorf("signal: %v", plain.record.Signal)
	}
}

// TestBackgroundChildrenEndWithTheAgent: the control is a plain shell, whose child continues.
func TestBackgroundChildrenEndWithTheAgent(t *testing.T) {
	h := newHost(t)
	const script = `trap '' HUP TERM; (setsid sleep 1000 &) & sleep 1000 & exit 3`
	outside := newLifeline(t)
	plain := exec.Command("sh", "-c", script)
	hold, err := os.OpenFile(outside.dir+"/fifo", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	plain.ExtraFiles = []*os.File{hold}
	plain.Run() // it exits with 3
	hold.Close()
	if !outside.silent(100 * time.Millisecond) {
		t.Fatal("control: the plain shell's children are gone")
	}
	outside.cut()
	outside.gone(2 * time.Second)

	inside := newLifeline(t)
	r := h.sh(holdLifeline+script, inside.flag())
	inside.gone(atOnce)
	r.want(t, agent.StatusExited, 3, "")
}

// TestOrphansAreReaped: without a PID 1 that reaps, each orphan would stay a zombie. The
// control is a parent that does not reap.
func TestOrphansAreReaped(t *testing.T) {
	h := newHost(t)
	const count = `zombies() { cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z'; }; `
	control := h.sh(`perl -e 'for (1..20) { fork or exit } sleep 1000' & ` + count +
		`until [ "$(zombies)" = 20 ]; do sleep 0.02; done; zombies`)
	control.want(t, agent.StatusExited, 0, "20\n")
	// Their output ends when they end; only the process that reaps them removes their entries
	// from /proc.
	r := h.sh(`orphans=$(for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (true & echo $!) ; done); ` + count +
		`for i in $orphans; do while [ -e /proc/$i ]; do sleep 0.02; done; done; zombies`)
	r.want(t, agent.StatusExited, 1, "0\n") // grep counts 0: status 1
}

// ticks prints the time on CLOCK_BOOTTIME, line after line, from two processes that ignore
// signals until they are killed. Their memory and memberships of IPv6 groups take
// the kernel a while to free.
const ticks = `
import os, signal, socket, struct, threading, time
for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
    signal.signal(number, signal.SIG_IGN)
def tick():
    while True:
        os.write(1, b"%d\n" % time.clock_gettime_ns(time.CLOCK_BOOTTIME))
threading.Thread(target=tick).start()
if os.fork() == 0:
    tick()
held, sockets, group = bytearray(os.urandom(4096) * (150 << 8)), [], 0
while group < 3000:
    try:
        member = bytes([0xff, 0x15]) + bytes(10) + struct.pack(">II", group, 1)[:4] + struct.pack("I", 1)
        sockets[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
        group += 1
    except (IndexError, OSError):
        sockets.append(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
tick()
`

// beforeDeadline gives the agent enough time to print word: on a busy machine it sets a longer
// limit.
func (h *host) beforeDeadline(limit *time.Duration, word string, flags []string, command ...string) result {
	for {
		r := h.agent(append([]string{"--timeout", limit.String()}, flags...), command...)
		if strings.Contains(r.stdout, word) || *limit > patience() {
			return r
		}
		*limit *= 2
	}
}

// ticked returns the first and the last time of those lines; the last line may be incomplete.
func ticked(t *testing.T, output string) (first, last time.Duration) {
	t.Helper()
	lines := strings.Split(output, "\n")
	for _, line := range lines[:len(lines)-1] {
		ns, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if first == 0 {
			first = time.Duration(ns)
		}
		last = max(last, time.Duration(ns))
	}
	if first == 0 {
		t.Fatal("it did not tick")
	}
	return first, last
}

func bootTime(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// TestNothingExecutesAfterTheDeadline: the deadline is followed by the grace period. The record
// has the moment after which nothing executed, which is earlier than the end. The control is
// the same program and a plain SIGKILL: the kernel needs as long to free its resources, and the
// program does not execute either.
func TestNothingExecutesAfterTheDeadline(t *testing.T) {
	h := newHost(t)
	const grace = 300 * time.Millisecond
	limit := testhost.Patience(1500 * time.Millisecond)
	// A signal reaches another processor faster than this, if that processor is executing the
	// agent.
	const delivery = 10 * time.Millisecond

	control := exec.Command("unshare", "--net", "sh", "-c", `ip link set lo up && exec "$@"`, "sh", python, "-c", ticks)
	control.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	output, err := control.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := control.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for begin := bootTime(t); bootTime(t) < begin+limit; { // let it tick for that long
		if _, err := io.CopyN(&text, output, 1000); err != nil {
			t.Fatal(err)
		}
	}
	unix.Kill(-control.Process.Pid, unix.SIGKILL)
	killed := bootTime(t)
	io.Copy(&text, output) // until both have ended
	ended := bootTime(t)
	control.Wait()
	_, last := ticked(t, text.String())
	if last > killed+delivery || last < killed-limit/2 {
		t.Errorf("control: its last tick was %v after SIGKILL", last-killed)
	}
	t.Logf("control: the last tick %v after SIGKILL, the end %v after it", last-killed, ended-killed)

	r := h.beforeDeadline(&limit, "\n", []string{"--stop-timeout", grace.String(), "--memory", "512M"}, python, "-c", ticks)
	if r.record.Status != agent.StatusTimeout || r.record.ExecutedMS == nil {
		t.Fatalf("%+v\n%s", r.record, r.stderr)
	}
	first, last := ticked(t, r.stdout)
	executed := time.Duration(*r.record.ExecutedMS) * time.Millisecond
	// The program's first tick is later than its start, from which the record counts.
	if ran := last - first; ran > executed || ran < limit/2 {
		t.Errorf("it ticked for %v, the record says that it executed for %v", ran, executed)
	}
	if executed < limit+grace || executed > limit+grace+patience() || r.record.WallMS+1 < *r.record.ExecutedMS {
		t.Errorf("it executed for %v and ended after %d ms; %v and %v are allowed", executed, r.record.WallMS, limit, grace)
	}
	t.Logf("the last tick after %v of %v, the end after %d ms", last-first, executed, r.record.WallMS)
}

// crowd takes almost all of the CPU limit that it shares with clove-init.
const crowd = `
$SIG{TERM} = "IGNORE"; pipe R, W;
for (1..100) { if (!fork) { close W; <R>; 1 while 1 } }
syswrite STDOUT, "ready\n"; close W; 1 while 1`

// TestACPULimitDelaysNoDeadline: clove, which is outside of the limit, ends the agent in time.
// clove-init alone would be about two seconds late.
func TestACPULimitDelaysNoDeadline(t *testing.T) {
	h := newHost(t)
	const grace, late = 300 * time.Millisecond, time.Second
	limit := testhost.Patience(4 * time.Second)
	r := h.beforeDeadline(&limit, "ready\n", []string{"--cpus", "0.05", "--stop-timeout", grace.String()}, "perl", "-e", crowd)
	if r.want(t, agent.StatusTimeout, agent.ExitTimeout, "ready\n"); r.record.ExecutedMS == nil {
		t.Fatalf("%+v", r.record)
	}
	executed := time.Duration(*r.record.ExecutedMS) * time.Millisecond
	if executed < limit+grace || executed > limit+grace+testhost.Patience(late) {
		t.Errorf("it executed for %v, allowed are %v and %v", executed, limit, grace)
	}
	t.Logf("it executed for %v and ended after %d ms", executed, r.record.WallMS)
}
