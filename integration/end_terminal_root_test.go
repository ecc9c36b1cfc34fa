//go:build root

package integration

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// TestARealTerminal: size, resize, echo, line editing and the end of a session.
func TestARealTerminal(t *testing.T) { aRealTerminal(t, newHost(t)) }

func aRealTerminal(t *testing.T, h *host) {
	p := newPty(h)
	before := p.mode()
	// It polls for the new size: a shell that waits in read may act on the signal only after
	// the next line.
	p.run("-t", "--", "sh", "-c", `test -t 0 && test -t 1 && test -t 2 && tty && stty size
trap told=1 WINCH; echo on
until [ "$told" ] && [ "$(stty size)" = "50 132" ]; do sleep 0.05; done
stty size; read line && echo "read $line"; exit 4`)
	p.shows("/dev/pts/0\r\n24 80\r\n") // each line ends with one CR
	p.shows("on")
	if during := p.mode(); during.Lflag&unix.ICANON != 0 || before.Lflag&unix.ICANON == 0 {
		t.Errorf("the user's terminal is not raw: %#x, before %#x", during.Lflag, before.Lflag)
	}
	p.resize(50, 132)
	p.shows("50 132")
	p.types("hallx\x7fo\r") // the sandbox's own line discipline edits it
	p.shows("read hallo")
	if code := p.ends(); code != 4 {
		t.Errorf("exit %d", code)
	}
	if after := p.mode(); after != before {
		t.Errorf("the terminal stays changed:\n%+v, before\n%+v", after, before)
	}
}

// TestAProcessThatClosesItsStreamsKeepsItsTerminal: the terminal hangs up when the process has
// ended, not when no process has it open for a while. cat closes its streams before it ends,
// so otherwise SIGHUP would kill it now and then.
func TestAProcessThatClosesItsStreamsKeepsItsTerminal(t *testing.T) {
	const closes = `exec 0<&- 1>&- 2>&-; sleep 0.5; echo late >/dev/tty; exit 7`
	p := newPty(newHost(t))
	p.run("-t", "--", "sh", "-c", closes)
	p.shows("late")
	if code := p.ends(); code != 7 {
		t.Errorf("exit %d", code)
	}
	d := newCloved(t)
	d.detach("closing", "sleep 1000")
	if r := d.clove("exec", "-t", "closing", "sh", "-c", closes); r.code != 7 || !strings.Contains(r.stdout, "late") {
		t.Errorf("exec: %+v", r)
	}
}

// TestWithoutTheFlagThereIsNoTerminal is the control of the test above: on the same terminal,
// without -t, the agent has pipes.
func TestWithoutTheFlagThereIsNoTerminal(t *testing.T) {
	withoutTheFlagThereIsNoTerminal(t, newHost(t))
}

func withoutTheFlagThereIsNoTerminal(t *testing.T, h *host) {
	p := newPty(h)
	before := p.mode()
	p.run("--", "sh", "-c", "test -t 0 || test -t 1 || echo pipes; tty; exit 2")
	p.shows("pipes")
	p.shows("not a tty")
	if code := p.ends(); code != 2 || p.mode() != before {
		t.Errorf("exit %d", code)
	}
}

// busy prints its name itself when it runs, because the shell that starts it cannot know when.
const busy = `perl -e '$| = 1; print "busy\n"; sleep 1000'`

// TestTheInterruptKeyHitsTheForegroundInside: ^C ends what the shell inside runs, and neither
// that shell nor clove. Without -t the same key sends a signal.
func TestTheInterruptKeyHitsTheForegroundInside(t *testing.T) {
	theInterruptKeyHitsTheForegroundInside(t, newHost(t))
}

func theInterruptKeyHitsTheForegroundInside(t *testing.T, h *host) {
	p := newPty(h)
	p.run("-t", "--", "sh", "-c", `trap : INT; `+busy+`; echo "status $?"; exit 6`)
	p.shows("busy")
	p.types("\x03")
	p.shows("status 130")
	if code := p.ends(); code != 6 {
		t.Errorf("exit %d", code)
	}
	plain := newPty(h)
	plain.run("--", "sh", "-c", busy)
	plain.shows("busy")
	plain.types("\x03")
	if code := plain.ends(); code != agent.ExitSignalBase+int(unix.SIGINT) {
		t.Errorf("without -t: exit %d", code)
	}
}

// TestAnInteractiveShellHasJobs: ^Z inside is handled by the inner shell.
func TestAnInteractiveShellHasJobs(t *testing.T) { anInteractiveShellHasJobs(t, newHost(t)) }

func anInteractiveShellHasJobs(t *testing.T, h *host) {
	p := newPty(h)
	p.run("-t", "-e", "PS1=prompt> ", "--", "sh", "-i")
	p.shows("prompt> ")
	p.types(busy + "\r")
	p.shows("busy\r\n") // not as it was typed; the shell may clear the line before
	p.types("\x1a")
	p.shows("Stopped")
	p.shows("prompt> ")
	p.types("kill -KILL %1; wait %1; echo ov''er\r")
	p.shows("over")
	p.types("exit 8\rexit 8\r") // the first exit may only warn of the stopped job
	if code := p.ends(); code != 8 {
		t.Errorf("exit %d", code)
	}
}

func TestTheEndOfFileKeyEndsAShell(t *testing.T) { theEndOfFileKeyEndsAShell(t, newHost(t)) }

func theEndOfFileKeyEndsAShell(t *testing.T, h *host) {
	p := newPty(h)
	p.run("-t", "-e", "PS1=prompt> ", "--", "sh", "-i")
	p.shows("prompt> ")
	p.types("\x04")
	if code := p.ends(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestAClosedWindowEndsTheAgent: the user's terminal is closed.
func TestAClosedWindowEndsTheAgent(t *testing.T) { aClosedWindowEndsTheAgent(t, newHost(t)) }

func aClosedWindowEndsTheAgent(t *testing.T, h *host) {
	life := newLifeline(t)
	p := newPty(h)
	p.run("-t", life.flag(), "--", "sh", "-c", holdLifeline+"echo ready; while :; do echo beat >&9; sleep 0.02; done")
	p.shows("ready")
	life.beats()
	p.slave.Close()
	p.master.Close() // the kernel sends HUP to clove's session
	p.ends()
	life.gone(atOnce)
}

func TestTheTerminalIsRestoredWhateverTheEnd(t *testing.T) {
	theTerminalIsRestoredWhateverTheEnd(t, newHost(t))
}

func theTerminalIsRestoredWhateverTheEnd(t *testing.T, h *host) {
	for name, command := range map[string][]string{
		"timeout":   {"-t", "--timeout=300ms", "--stop-timeout=100ms", "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.02; done"},
		"signal":    {"-t", "--", "sh", "-c", "kill -SEGV $$"},
		"not found": {"-t", "--", "no-such-command"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPty(h)
			before := p.mode()
			p.run(command...)
			if code := p.ends(); code == 0 {
				t.Error("exit 0")
			}
			if p.mode() != before {
				t.Error("the terminal stays raw")
			}
		})
	}
}

// TestOutputCannotReadTheTerminal: sequences that make a terminal answer, or set its clipboard, are
// not shown; with --clipboard the clipboard is. A pipe gets every byte, which is the control.
func TestOutputCannotReadTheTerminal(t *testing.T) {
	h := newHost(t)
	const script = `printf 'a\033]52;c;aGk=\007b\033[21tc\033P$qm\033\\d\005e\033[1mf\n'`
	const shown, clipboard = "abcde\x1b[1mf", "a\x1b]52;c;aGk=\abcde\x1b[1mf"
	for _, flags := range [][]string{{"-t", "--"}, {"--"}} {
		p := newPty(h)
		p.run(append(flags, "sh", "-c", script)...)
		p.shows(shown)
		p.ends()
		p = newPty(h)
		p.run(append([]string{"--clipboard"}, append(flags, "sh", "-c", script)...)...)
		p.shows(clipboard)
		p.ends()
	}
	if r := h.clove("run", "--", "sh", "-c", script); r.stdout != "a\x1b]52;c;aGk=\ab\x1b[21tc\x1bP$qm\x1b\\d\x05e\x1b[1mf\n" {
		t.Errorf("control: a pipe got %q", r.stdout)
	}
}
