//go:build root

package runtime

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// execResult is how a process of Exec ended.
type execResult struct {
	code   int
	err    error
	stdout string
	stderr string
}

// exec runs a process to its end and returns what came of it.
func (a *liveAgent) exec(e agent.Exec, stdin string) execResult {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	in, out, errs := pipe(a.t), pipe(a.t), pipe(a.t)
	go func() { io.WriteString(in.write, stdin); in.write.Close() }()
	var r execResult
	read := make(chan struct{}, 2)
	for into, from := range map[*string]pipeEnds{&r.stdout: out, &r.stderr: errs} {
		go func() { text, _ := io.ReadAll(from.read); *into = string(text); read <- struct{}{} }()
	}
	r.code, r.err = a.Exec(ctx, e, IO{Stdin: in.read, Stdout: out.write, Stderr: errs.write})
	out.write.Close()
	errs.write.Close()
	<-read
	<-read
	return r
}

// shell is exec of a script, which must succeed.
func (a *liveAgent) shell(script string) string {
	a.t.Helper()
	r := a.exec(agent.Exec{Command: []string{"sh", "-c", script}}, "")
	if r.err != nil || r.code != 0 {
		a.t.Fatalf("%s: exit code %d, %v\n%s", script, r.code, r.err, r.stderr)
	}
	return r.stdout
}

type pipeEnds struct{ read, write *os.File }

func pipe(t *testing.T) pipeEnds {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return pipeEnds{r, w}
}

// identity prints each attribute of a process that an agent and its exec sessions must share,
// one line each.
const identity = `
	for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done
	while read key rest; do case $key in
		Uid:|Gid:|Groups:|Cap*|NoNewPrivs:|Seccomp*|Sig[BIC]*|Umask:) echo $key $rest;; esac; done < /proc/self/status
	cat /proc/self/cgroup /proc/self/limits /proc/self/oom_score_adj
	echo /proc/self/fd/*
	cd /proc/self/root && pwd -P
	echo end`

// ignoreSignal ignores a signal that Go's runtime does not use. signal.Ignore cannot be used:
// it marks the signal as one that the runtime handles.
func ignoreSignal(t *testing.T, number uintptr) {
	t.Helper()
	set := func(handler uintptr) {
		action := [4]uintptr{handler} // struct sigaction of the kernel: the handler comes first
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	set(1) // SIG_IGN
	t.Cleanup(func() { set(0) })
}

// TestExecIsTheAgentsEqual: also if clove itself was started with a signal ignored, because
// processes inherit that.
func TestExecIsTheAgentsEqual(t *testing.T) {
	const signal = 32
	ignoreSignal(t, signal)
	out, err := exec.Command("grep", "SigIgn", "/proc/self/status").Output()
	_, mask, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
	if bits, _ := strconv.ParseUint(mask, 16, 64); bits>>(signal-1)&1 == 0 { // more may be ignored, for example under nohup(1)
		t.Fatalf("control: a child of this process ignores %q, %v", out, err)
	}
	for _, user := range []agent.User{{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"}, {Name: "root", Home: "/root"}} {
		t.Run(user.Name, func(t *testing.T) {
			a := startLive(t, identity+"; exec sleep 1000", func(s *agent.Spec) { s.User = user })
			var agents strings.Builder
			for line := ""; line != "end"; agents.WriteString(line + "\n") {
				line = a.line()
			}
			// Its cgroup is one of its own, below the agent's.
			equal := strings.ReplaceAll(a.shell(identity), "/session-1\n", "/\n")
			if equal != agents.String() {
				t.Errorf("the agent is\n%s\nand its equal\n%s", &agents, equal)
			}
			// Control: the attributes to compare are there.
			wants := []string{"NoNewPrivs: 1\n", "Seccomp: 2\n", "Seccomp_filters: 1\n", "Max open files"}
			if user.UID != 0 {
				for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
					wants = append(wants, set+": 0000000000000000\n")
				}
			}
			for _, want := range wants {
				if !strings.Contains(equal, want) {
					t.Errorf("no %q in\n%s", want, equal)
				}
			}
		})
	}
}

// TestExecCannotDoMore: an exec session can do no more than the agent. The same actions
// work outside and fail inside.
func TestExecCannotDoMore(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	for _, attack := range []string{"unshare -U true", "mount -t tmpfs none /tmp", "cat /etc/shadow"} {
		if out, err := exec.Command("unshare", "-m", "sh", "-c", attack).CombinedOutput(); err != nil {
			t.Fatalf("control: %s: %v\n%s", attack, err, out)
		}
		if r := a.exec(agent.Exec{Command: []string{"sh", "-c", attack}}, ""); r.err != nil || r.code == 0 {
			t.Errorf("%s: exit code %d, %v", attack, r.code, r.err)
		}
	}
}

func TestExecStreamsAndStatus(t *testing.T) {
	a := startLive(t, "exec sleep 1000", func(s *agent.Spec) { s.Env = append(s.Env, "OLD=1", "KEPT=2") })
	got := a.exec(agent.Exec{Command: []string{"sh", "-c", `read line; echo "$line $OLD $KEPT $PWD"; echo wrong >&2; exit 3`},
		Env: []string{"OLD=new"}, Dir: "/tmp"}, "question\n")
	if want := (execResult{3, nil, "question new 2 /tmp\n", "wrong\n"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if r := a.exec(agent.Exec{Command: []string{"sh", "-c", "kill -TERM $$"}}, ""); r.code != 143 || r.err != nil {
		t.Errorf("ended by TERM: %+v", r)
	}
	// A process that it left running holds the output open; the session ends all the same.
	if r := a.exec(agent.Exec{Command: []string{"sh", "-c", "sleep 1000 & echo left"}}, ""); r.stdout != "left\n" || r.code != 0 {
		t.Errorf("%+v", r)
	}
	if large := a.shell("head -c 3000000 /dev/zero"); len(large) != 3000000 {
		t.Errorf("%d bytes came", len(large))
	}
}

func TestExecThatNeverRan(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	for _, row := range []struct {
		e    agent.Exec
		code int
		kind agent.Kind
	}{
		{agent.Exec{Command: []string{"no-such-command"}}, 127, agent.KindNotFound},
		{agent.Exec{Command: []string{"/etc/passwd"}}, 126, agent.KindInvalid},
		{agent.Exec{Command: []string{"true"}, Dir: "/no-such-folder"}, 125, agent.KindInternal},
		{agent.Exec{Command: []string{"true"}, Dir: "tmp"}, 125, agent.KindInvalid},
		{agent.Exec{Command: []string{"true"}, Env: []string{"X"}}, 125, agent.KindInvalid},
		{agent.Exec{}, 125, agent.KindInvalid},
	} {
		if r := a.exec(row.e, ""); r.code != row.code || agent.KindOf(r.err) != row.kind {
			t.Errorf("%+v: exit code %d, %v", row.e, r.code, r.err)
		}
	}
	if err := a.Pause(); err != nil {
		t.Fatal(err)
	}
	if r := a.exec(agent.Exec{Command: []string{"true"}}, ""); agent.KindOf(r.err) != agent.KindConflict {
		t.Errorf("in a paused agent: %v", r.err)
	}
	if err := a.Stop(0); err != nil {
		t.Fatal(err)
	}
	a.ends()
	if r := a.exec(agent.Exec{Command: []string{"true"}}, ""); agent.KindOf(r.err) != agent.KindConflict {
		t.Errorf("in an agent that has ended: %v", r.err)
	}
}

// begin starts a process, waits until it writes "ready", and returns its end.
func (a *liveAgent) begin(ctx context.Context, script string) <-chan execResult {
	a.t.Helper()
	return a.beginExec(ctx, agent.Exec{Command: []string{"sh", "-c", script}})
}

func (a *liveAgent) beginExec(ctx context.Context, e agent.Exec) <-chan execResult {
	a.t.Helper()
	out := pipe(a.t)
	ended := make(chan execResult, 1)
	go func() {
		code, err := a.Exec(ctx, e, IO{Stdout: out.write, Stderr: os.Stderr})
		ended <- execResult{code: code, err: err}
	}()
	out.read.SetReadDeadline(time.Now().Add(soon))
	if _, err := io.ReadFull(out.read, make([]byte, len("ready\n"))); err != nil {
		a.t.Fatal(err)
	}
	return ended
}

const deafTree = `trap '' TERM HUP; sleep 1000 & echo ready; while :; do sleep 1000; done`

func TestTheDeadlineKillsWhatExecStarted(t *testing.T) {
	a := startLive(t, "trap '' TERM; while :; do sleep 1000; done", func(s *agent.Spec) {
		s.Limits.StopGrace = 100 * time.Millisecond
	})
	ended := a.begin(context.Background(), deafTree)
	a.endIn(200 * time.Millisecond)
	if record := a.ends(); record.Status != agent.StatusTimeout {
		t.Errorf("%s", record.Status)
	}
	if r := <-ended; r.code != agent.ExitKilled || r.err != nil {
		t.Errorf("%+v", r)
	}
}

func TestTheAgentsEndIsTheEndOfWhatExecStarted(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	ended := a.begin(context.Background(), deafTree)
	if err := a.Stop(0); err != nil {
		t.Fatal(err)
	}
	a.ends()
	if r := <-ended; r.code != agent.ExitKilled {
		t.Errorf("%+v", r)
	}
}

func TestItsCallersEndIsItsEnd(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	before, err := a.Processes()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := a.begin(ctx, deafTree)
	if during, _ := a.Processes(); len(during) < len(before)+2 {
		t.Errorf("control: %d processes beside the agent's %d", len(during), len(before))
	}
	cancel()
	if r := <-ended; r.code != agent.ExitKilled || r.err != nil {
		t.Errorf("%+v", r)
	}
	// Its orphans are reaped by PID 1, which takes a moment.
	for deadline := time.Now().Add(soon); ; {
		after, err := a.Processes()
		if err != nil {
			t.Fatal(err)
		}
		if len(after) == len(before) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %+v", after)
		}
	}
}
