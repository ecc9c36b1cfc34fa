//go:build root

package integration

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// TestSignalsReachTheAgent: the control is the same signal without a handler inside, which
// ends the agent, not clove.
func TestSignalsReachTheAgent(t *testing.T) { signalsReachTheAgent(t, newHost(t)) }

func signalsReachTheAgent(t *testing.T, h *host) {
	for _, signal := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGQUIT} {
		name := strings.TrimPrefix(unix.SignalName(signal), "SIG")
		t.Run(name, func(t *testing.T) {
			handled := h.start(nil, "sh", "-c", "trap 'echo got "+name+"; exit 9' "+name+"; echo ready; while :; do sleep 0.02; done")
			handled.send(signal)
			handled.wait().want(t, agent.StatusExited, 9, "got "+name+"\n")

			plain := h.start(nil, "perl", "-e", "$| = 1; print qq(ready\n); sleep 1000")
			plain.send(signal)
			r := plain.wait()
			r.want(t, agent.StatusSignaled, agent.ExitSignalBase+int(signal), "")
			if said(r.record.Signal) != "SIG"+name {
				t.Errorf("signal: %q", said(r.record.Signal))
			}
		})
	}
}

// ready waits until the agent says that it is.
func (r *running) ready() {
	r.h.t.Helper()
	if line := r.line(); line != "ready" {
		r.h.t.Fatalf("the agent says %q\n%s", line, &r.stderr)
	}
}

// send waits until the agent is ready, then signals clove.
func (r *running) send(signal unix.Signal) {
	r.h.t.Helper()
	r.ready()
	if err := r.cmd.Process.Signal(signal); err != nil {
		r.h.t.Fatal(err)
	}
}

// TestATermBeginsTheGrace: an agent that ignores TERM ends with its grace when clove gets one.
// The control is HUP, which it ignores as well, and survives.
func TestATermBeginsTheGrace(t *testing.T) { aTermBeginsTheGrace(t, newHost(t)) }

func aTermBeginsTheGrace(t *testing.T, h *host) {
	life := newLifeline(t)
	r := h.start([]string{"--stop-timeout=500ms", life.flag()}, "sh", "-c",
		holdLifeline+"trap '' TERM HUP; (trap '' TERM HUP; setsid sleep 1000 &) & echo ready; while :; do echo beat >&9; sleep 0.02; done")
	r.send(unix.SIGHUP)
	time.Sleep(time.Second) // twice the grace
	life.beats()
	if err := r.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.wait().want(t, agent.StatusKilled, agent.ExitKilled, "")
	life.gone(atOnce)
}

// TestTheThirdInterruptKills: also an agent that ignores interrupts. The control is that it
// survives the first two.
func TestTheThirdInterruptKills(t *testing.T) { theThirdInterruptKills(t, newHost(t)) }

func theThirdInterruptKills(t *testing.T, h *host) {
	r := h.start(nil, "sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 0.02; done")
	r.send(unix.SIGINT)
	for range 2 {
		if line := r.line(); line != "no" {
			t.Fatalf("the agent says %q", line)
		}
		r.cmd.Process.Signal(unix.SIGINT)
	}
	got := r.wait()
	got.want(t, agent.StatusKilled, agent.ExitKilled, "")
	if said(got.record.Signal) != "SIGKILL" || got.stderr == "" {
		t.Errorf("signal %q, said %q", said(got.record.Signal), got.stderr)
	}
}

// TestStoppedTogether: TSTP to clove stops both, even an agent that ignores it; CONT continues
// both. The controls are the agent's writes before and after.
func TestStoppedTogether(t *testing.T) { stoppedTogether(t, newHost(t)) }

func stoppedTogether(t *testing.T, h *host) {
	life := newLifeline(t)
	r := h.start([]string{life.flag()}, "sh", "-c",
		holdLifeline+"trap '' TSTP; echo ready; while :; do echo beat >&9; sleep 0.02; done")
	life.stopAndGo(r)
	// A second time: the first stop must not have changed anything.
	if err := r.cmd.Process.Signal(unix.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	life.stopped(r)
	// If a stopped clove is killed, the frozen agent still ends.
	r.cmd.Process.Kill()
	r.cmd.Wait()
	h.clove("gc")
	life.gone(atOnce)
}

func (l *lifeline) stopAndGo(r *running) {
	l.t.Helper()
	r.send(unix.SIGTSTP)
	l.stopped(r)
	if err := r.cmd.Process.Signal(unix.SIGCONT); err != nil {
		l.t.Fatal(err)
	}
	l.beats()
}

// stopped waits until clove has stopped itself, and then expects no output.
func (l *lifeline) stopped(r *running) {
	l.t.Helper()
	if err := unix.Waitid(unix.P_PID, r.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
		l.t.Fatal(err)
	}
	if !l.silent(time.Second) {
		l.t.Error("the agent goes on")
	}
}

// TestClosedInputIsAnEmptyOne: an agent that reads it gets the end of file.
func TestClosedInputIsAnEmptyOne(t *testing.T) {
	h := newHost(t)
	h.agentWith("", nil, "sh", "-c", "cat; echo end").want(t, agent.StatusExited, 0, "end\n")
}
