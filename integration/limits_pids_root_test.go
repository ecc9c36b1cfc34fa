//go:build root

package integration

import (
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// forkUntilRefused starts up to argv[1] children that stay until it ends, prints how many it
// got, and ends with argv[2].
const forkUntilRefused = `
import errno, os, sys
started = 0
try:
    while started < int(sys.argv[1]):
        if os.fork() == 0:
            os.read(0, 1)
            os._exit(0)
        started += 1
except OSError as e:
    print(errno.errorcode[e.errno], end=" ")
print(started)
sys.exit(int(sys.argv[2]))
`

// TestPidsLimit: fork fails at the limit. That ends nothing by itself, and is reported on
// stderr only if the agent failed.
func TestPidsLimit(t *testing.T) {
	h := newHost(t)
	// Standard input stays open; otherwise the children would end at once.
	forks := func(limit string, ending int) result {
		r := h.start([]string{"--pids-limit", limit}, python, "-c", forkUntilRefused, "100", strconv.Itoa(ending))
		line := r.line()
		ended := r.wait()
		ended.stdout = line
		return ended
	}
	control := forks("200", 3)
	control.want(t, agent.StatusExited, 3, "100")
	if refused := control.record.Events.PidsMax; refused == nil || *refused != 0 || control.stderr != "" {
		t.Errorf("control: with room for all, %s forks were refused\n%s", show(refused), control.stderr)
	}
	for _, ending := range []int{0, 3} {
		r := forks("64", ending)
		refusal, started, _ := strings.Cut(r.stdout, " ")
		// clove-init's own threads count: it has about ten.
		n, _ := strconv.Atoi(started)
		if refusal != "EAGAIN" || n < 40 || n >= 64 || r.code != ending || r.record.Status != agent.StatusExited {
			t.Errorf("%s after %s children, %s, exit %d", refusal, started, r.record.Status, r.code)
		}
		if refused := r.record.Events.PidsMax; refused == nil || *refused < 1 {
			t.Errorf("the kernel is said to have refused %s forks", show(refused))
		}
		if said := strings.Contains(r.stderr, "clove: pids limit of 64 refused "); said != (ending != 0) {
			t.Errorf("exit %d, and stderr is %q", ending, r.stderr)
		}
		if peak := r.record.Usage.PidsPeak; peak != nil && (*peak < 60 || *peak > 64) {
			t.Errorf("the peak was %d of 64", *peak)
		}
	}
}

// TestForkBomb runs a fork bomb and checks the host meanwhile. TestPidsLimit's control shows
// that without a limit forks succeed.
func TestForkBomb(t *testing.T) {
	h := newHost(t)
	// The bomb doubles until forks are refused, which its shells report: the agent's own end
	// ends it. The first shell forks once before the bomb begins, because a shell whose fork
	// is refused ends.
	r := h.start([]string{"--pids-limit", "64", "--cpus", "0.5"}, "sh", "-c",
		`mkfifo /tmp/said && exec 3<>/tmp/said; bomb() { bomb | bomb & }; (bomb) 2>&3 & read refused <&3; echo running; read end; exit 0`)
	if line := r.line(); line != "running" {
		t.Fatalf("the agent says %q", line)
	}
	for range 20 {
		onHost(t, "true") // it needs a process, which the bomb must not have taken
	}
	ended := r.wait()
	if ended.record.Status != agent.StatusExited || ended.code != 0 {
		t.Errorf("%+v\n%s", ended.record, ended.stderr)
	}
	if refused := ended.record.Events.PidsMax; refused == nil || *refused < 1 {
		t.Errorf("the bomb never met its limit: %s forks refused", show(refused))
	}
}

// orphans makes argv[1] grandchildren that end after their parent has ended without waiting
// for them: clove-init must reap them.
const orphans = `
import os, sys
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
print("all")
`

// zombies are children that their parent does not wait for.
const zombies = `
import errno, os, sys
try:
    for _ in range(int(sys.argv[1])):
        if os.fork() == 0:
            os._exit(0)
    print("all")
except OSError as e:
    print(errno.errorcode[e.errno])
`

// TestZombieFlood: clove-init reaps the agent's orphans, so that zombies do not use up the
// limit. The control are zombies that the agent keeps, which do.
func TestZombieFlood(t *testing.T) {
	h := newHost(t)
	count := strconv.Itoa(rounds(1500, 500))
	h.agent([]string{"--pids-limit", "128"}, python, "-c", zombies, count).want(t, agent.StatusExited, 0, "EAGAIN\n")
	h.agent([]string{"--pids-limit", "128"}, python, "-c", orphans, count).want(t, agent.StatusExited, 0, "all\n")
}
