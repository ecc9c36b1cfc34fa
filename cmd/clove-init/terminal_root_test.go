//go:build root

package main

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/testhost"
)

// terminal starts the script on a pty of 33 by 77 and returns the pty's reader.
func terminal(t *testing.T, script string) (*box, *initproto.Started, *bufio.Reader) {
	t.Helper()
	orders := shell(script)
	orders.Terminal = &initproto.Terminal{Rows: 33, Columns: 77}
	b := start(t, orders)
	started := b.started()
	if started.Terminal == nil {
		t.Fatal("no terminal came with the start")
	}
	t.Cleanup(func() { started.Terminal.Close() })
	check(t, started.Terminal.SetReadDeadline(time.Now().Add(testhost.Patience(patience))))
	return b, started, bufio.NewReader(started.Terminal)
}

// TestTerminal: the agent's three descriptors are a pty of the sandbox. It is the controlling
// terminal, has the ordered size, and belongs to the agent.
func TestTerminal(t *testing.T) {
	b, _, output := terminal(t, `
		tty; stty size; stat -L -c '%u %a' /proc/self/fd/0
		for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done
		set -- $(cat /proc/$$/stat); [ $7 != 0 ] && echo controlled
		: > /dev/tty && echo opened; ls /proc/self/fd | wc -l`)
	text, err := io.ReadAll(output)
	if err != nil && !strings.Contains(err.Error(), unix.EIO.Error()) { // EIO: the last slave closed
		t.Fatal(err)
	}
	want := "/dev/pts/0 33 77 1000 620 /dev/pts/0 /dev/pts/0 /dev/pts/0 controlled opened 4"
	if got := strings.Join(strings.Fields(string(text)), " "); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if end := b.exited(); end.Code != 0 {
		t.Errorf("got %+v", end)
	}
	if text := b.text(); text != "" {
		t.Errorf("PID 1's own output got %q", text)
	}
}

// TestTerminalKeysAndSize: what the supervisor writes arrives as typed input, and a new size
// of the master reaches the agent with SIGWINCH.
func TestTerminalKeysAndSize(t *testing.T) {
	b, started, output := terminal(t, `
		stty -echo; trap 'stty size; exit 0' WINCH; trap 'echo interrupted' INT
		echo ready; while :; do sleep 0.01; done`)
	line := func(want string) {
		t.Helper()
		if got, err := output.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
			t.Fatalf("terminal shows %q, %v; want %q", got, err, want)
		}
	}
	line("ready")
	_, err := started.Terminal.WriteString("\x03")
	check(t, err)
	line("interrupted")
	check(t, descriptor.Use(started.Terminal, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 11, Col: 22})
	}))
	line("11 22")
	if end := b.exited(); end.Code != 0 {
		t.Errorf("got %+v", end)
	}
}

// TestTerminalHangup: PID 1 keeps no copy of the master, so the agent gets a hangup when it is
// closed.
func TestTerminalHangup(t *testing.T) {
	b, started, output := terminal(t, `trap 'exit 9' HUP; echo ready; while :; do sleep 0.01; done`)
	if _, err := output.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	started.Terminal.Close()
	if end := b.exited(); end.Code != 9 {
		t.Errorf("got %+v", end)
	}
}
