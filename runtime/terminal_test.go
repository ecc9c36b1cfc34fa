package runtime

import (
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// openPty makes a terminal of 30 rows and 90 columns.
func openPty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 90})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

func mode(t *testing.T, terminal *os.File) unix.Termios {
	t.Helper()
	got, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *got
}

func TestTerminalSize(t *testing.T) {
	t.Parallel()
	_, slave := openPty(t)
	if size := terminalSize(slave); *size != (initproto.Terminal{Rows: 30, Columns: 90}) {
		t.Errorf("%+v", size)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if size := terminalSize(null); *size != (initproto.Terminal{}) {
		t.Errorf("no terminal: %+v", size)
	}
}

// TestTerminalsAreJoined: the user's terminal becomes raw and is restored, the agent's
// terminal has its size, and bytes pass unchanged. The test plays the user and the agent.
func TestTerminalsAreJoined(t *testing.T) {
	t.Parallel()
	user, own := openPty(t)
	master, agentSide := openPty(t)
	before := mode(t, own)
	s := newSupervised(t, nil)
	s.launch.streams = IO{Stdin: own, Stdout: own, Stderr: os.Stderr}
	sv := supervisorOf(s.launch)
	sv.terminal = joinTerminal(master, sv.pipes, sv.streams)
	if raw := mode(t, own); raw.Lflag&(unix.ICANON|unix.ISIG|unix.ECHO) != 0 || raw.Oflag&unix.OPOST != 0 {
		t.Errorf("not raw: %+v", raw)
	}
	agentSide.WriteString("hello\n")
	text := make([]byte, 7)
	if _, err := io.ReadFull(user, text); err != nil || string(text) != "hello\r\n" {
		t.Errorf("the user sees %q, %v", text, err)
	}
	if err := unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 7, Col: 11}); err != nil {
		t.Fatal(err)
	}
	sv.pass(unix.SIGWINCH, s.signals)
	if size := terminalSize(agentSide); size.Rows != 7 || size.Columns != 11 {
		t.Errorf("the agent's window has %+v", size)
	}
	user.WriteString("typed\r")
	line := make([]byte, 64)
	if n, err := agentSide.Read(line); err != nil || string(line[:n]) != "typed\n" {
		t.Errorf("the agent reads %q, %v", line[:n], err)
	}
	sv.terminal.restore()
	if after := mode(t, own); after != before {
		t.Errorf("it stays changed: %+v", after)
	}
}

// TestATerminalWithoutAUser: -t in a script. There is no terminal to make raw.
func TestATerminalWithoutAUser(t *testing.T) {
	t.Parallel()
	master, agentSide := openPty(t)
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := newSupervised(t, nil)
	s.launch.streams = IO{Stdin: in, Stdout: outWrite, Stderr: os.Stderr}
	sv := supervisorOf(s.launch)
	sv.terminal = joinTerminal(master, sv.pipes, sv.streams)
	sv.pass(unix.SIGWINCH, s.signals)
	if size := terminalSize(agentSide); size.Rows != 30 {
		t.Errorf("the size changed: %+v", size)
	}
	agentSide.WriteString("x")
	if _, err := io.ReadFull(outRead, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	sv.terminal.restore()
	in.Close()
	outRead.Close()
}
