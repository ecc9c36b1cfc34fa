//go:build root

package runtime

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// ptrace is ptrace(2) in Perl.
func ptrace(request int, pid string) string {
	return fmt.Sprintf("syscall(%d, %d, %s, 0, 0) == 0", unix.SYS_PTRACE, request, pid)
}

// stopped makes its parent its tracer, and stops at a signal that would end it otherwise.
var stopped = "$| = 1; " + ptrace(unix.PTRACE_TRACEME, "0") + ` or die $!; print "ready\n"; kill "USR1", $$; exit 5`

func perl(script string) agent.Exec {
	return agent.Exec{Command: []string{"/usr/bin/perl", "-e", script}}
}

// TestAStopOfATraceeIsNoEnd: neither of the agent, whose parent is clove-init, nor of a session,
// whose parent is clove.
func TestAStopOfATraceeIsNoEnd(t *testing.T) {
	a := startLive(t, "", func(s *agent.Spec) {
		s.Command = []string{"/usr/bin/perl", "-e", stopped}
		s.Limits.WallClock, s.Limits.StopGrace = 3*time.Second, 100*time.Millisecond
	})
	if line := a.line(); line != "ready" {
		t.Fatal(line)
	}
	ended := a.begin(context.Background(), `echo $$ >/tmp/pid; exec perl -e '`+stopped+`'`)
	if state := a.shell(`until grep -h "^State:.*tracing stop" /proc/$(cat /tmp/pid)/status; do sleep 0.01; done`); !strings.Contains(state, "t (tracing stop)") {
		t.Errorf("control: %s", state)
	}
	select {
	case r := <-ended:
		t.Errorf("the session ended at a stop: %+v", r)
	case <-time.After(quiet):
	}
	a.shell("kill -9 $(cat /tmp/pid)")
	if r := <-ended; r.code != agent.ExitKilled || r.err != nil {
		t.Errorf("%+v", r)
	}
	if record := a.ends(); record.Status != agent.StatusTimeout {
		t.Errorf("the agent ended at a stop: %s", record.Status)
	}
}

// TestATracerKeepsNoSession: a process that traces another one and does not wait for it keeps
// its end from its parent. It is ended; the control is one that waits.
func TestATracerKeepsNoSession(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	const tracing = `$| = 1; syscall(%d, 0x59616d61, -1, 0, 0, 0); pipe(R, W); $p = $$; # PR_SET_PTRACER, for Yama
		if (!fork) { close R; %s or die $!; syswrite(W, "x"); %s; sleep 1000 while 1 }
		close W; sysread(R, $_, 1) == 1 or exit 9; exit 3`
	for wait, name := range map[string]string{"waitpid($p, 0)": "control", "": "keeps"} {
		began := time.Now()
		r := a.exec(perl(fmt.Sprintf(tracing, unix.SYS_PRCTL, ptrace(unix.PTRACE_SEIZE, "$p+0"), wait)), "")
		if took := time.Since(began); r.code != 3 || r.err != nil || took >= soon { // then exec has killed both
			t.Errorf("%s: %+v after %s", name, r, took)
		}
		const tracers = `grep -ls "^Name:.*perl" /proc/[0-9]*/status | cut -d/ -f3`
		left := strings.Count(a.shell(tracers), "\n")
		if want := map[string]int{"control": 1, "keeps": 0}[name]; left != want {
			t.Errorf("%s: %d tracers are left, want %d", name, left, want)
		}
		a.shell("kill -9 $(" + tracers + ") || :")
	}
}

// TestASessionTracesItsOwn: a session is under Landlock rules of its own, beside the agent's. The
// control is what each of them started itself.
func TestASessionTracesItsOwn(t *testing.T) {
	const attach = `for (split " ", $ARGV[0]) { print %s ? "yes " : $!{EPERM} ? "EPERM " : "$! " }`
	script := fmt.Sprintf(attach, ptrace(unix.PTRACE_SEIZE, "$_+0"))
	for _, user := range []agent.User{{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"}, {Name: "root", Home: "/root"}} {
		a := startLive(t, `mkfifo /tmp/go; sleep 1000 & echo $$ $!; read line </tmp/go; perl -e '`+script+`' "$line $!"; echo; exec sleep 1000`, func(s *agent.Spec) { s.User = user })
		agents := a.line()
		session := a.exec(agent.Exec{Command: []string{"sh", "-c", `sleep 1000 & perl -e '` + script + `' "$0 1 $!"; echo "1 $!" >/tmp/go`, agents}}, "")
		if session.stdout != "EPERM EPERM EPERM yes " {
			t.Errorf("%s: a session may trace %q of the agent's two, clove-init, its own", user.Name, session.stdout)
		}
		if line := a.line(); line != "EPERM EPERM yes " {
			t.Errorf("%s: the agent may trace %q of clove-init, a session's, its own", user.Name, line)
		}
	}
}
