//go:build root

package runtime

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

func TestExecWithATerminal(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	blocking, slave := openPty(t)
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that the deadline applies
	}
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "master")
	defer master.Close()
	master.SetReadDeadline(time.Now().Add(soon))
	before := mode(t, slave)
	ended := make(chan execResult, 1)
	go func() {
		code, err := a.Exec(context.Background(), agent.Exec{Terminal: true, Command: []string{"sh", "-c",
			// It polls: a shell that waits in read may act on the signal only after the next
			// line.
			`tty; stty size; trap told=1 WINCH; echo ready; until [ "$told" ] && [ "$(stty size)" = "41 101" ]; do sleep 0.05; done
			stty size; read line; echo "got $line"; exit 4`}},
			IO{Stdin: slave, Stdout: slave, Stderr: slave})
		ended <- execResult{code: code, err: err}
	}()
	lines := bufio.NewReader(master)
	line := func() string {
		text, err := lines.ReadString('\n')
		if err != nil {
			select {
			case r := <-ended:
				t.Fatalf("%v, and it ended with %d, %v", err, r.code, r.err)
			default:
				t.Fatal(err)
			}
		}
		return strings.TrimRight(text, "\r\n")
	}
	for _, want := range []string{"/dev/pts/0", "30 90", "ready"} {
		if got := line(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if raw := mode(t, slave); raw.Lflag&unix.ICANON != 0 {
		t.Error("the user's terminal is not raw")
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 41, Col: 101}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	if got := line(); got != "41 101" {
		t.Errorf("the new size is %q", got)
	}
	if _, err := master.WriteString("word\r"); err != nil {
		t.Fatal(err)
	}
	for got := ""; got != "got word"; got = line() {
	}
	select {
	case r := <-ended:
		if r.code != 4 || r.err != nil {
			t.Errorf("%+v", r)
		}
	case <-time.After(soon):
		t.Fatal("it does not end")
	}
	if after := mode(t, slave); after != before {
		t.Error("the user's terminal is not as it was")
	}
}
