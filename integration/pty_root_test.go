//go:build root

package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pty is a user's terminal window with clove as its first program.
type pty struct {
	h      *host
	master *os.File
	slave  *os.File // kept open, so that the terminal's mode can be read after clove's end
	cmd    *exec.Cmd
	seen   bytes.Buffer
}

// newPty makes a terminal of 24 rows and 80 columns.
func newPty(h *host) *pty {
	h.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	p := &pty{h: h, master: master}
	var number int
	p.control(master, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	})
	p.slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { p.master.Close(); p.slave.Close() })
	p.resize(24, 80)
	return p
}

// control runs f on a descriptor and leaves it in its non-blocking mode.
func (p *pty) control(f *os.File, use func(fd int) error) {
	p.h.t.Helper()
	raw, err := f.SyscallConn()
	if err == nil {
		if cerr := raw.Control(func(fd uintptr) { err = use(int(fd)) }); cerr != nil {
			err = cerr
		}
	}
	if err != nil {
		p.h.t.Fatal(err)
	}
}

func (p *pty) resize(rows, columns uint16) {
	p.h.t.Helper()
	p.control(p.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
}

func (p *pty) mode() unix.Termios {
	p.h.t.Helper()
	var mode unix.Termios
	p.control(p.slave, func(fd int) error {
		got, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			mode = *got
		}
		return err
	})
	return mode
}

// run starts clove run as the terminal's session leader.
func (p *pty) run(args ...string) {
	p.h.t.Helper()
	p.begin(append([]string{"run", "--rm"}, args...)...)
}

// begin starts a command of clove's as the terminal's session leader.
func (p *pty) begin(args ...string) {
	p.h.t.Helper()
	p.prepare(args...)
	p.start()
}

// prepare is begin up to the start.
func (p *pty) prepare(args ...string) {
	p.h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	p.h.t.Cleanup(cancel)
	p.cmd = p.h.command(ctx, args...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.slave, p.slave, p.slave
	p.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true, Credential: p.h.user}
}

func (p *pty) start() {
	p.h.t.Helper()
	if err := p.h.begin(p.cmd); err != nil {
		p.h.t.Fatal(err)
	}
}

// shows waits until the terminal shows text, after what it has shown before.
func (p *pty) shows(text string) {
	p.h.t.Helper()
	buffer := make([]byte, 4096)
	p.master.SetReadDeadline(time.Now().Add(patience()))
	for {
		if _, after, found := strings.Cut(p.seen.String(), text); found {
			p.seen.Reset()
			p.seen.WriteString(after)
			return
		}
		n, err := p.master.Read(buffer)
		p.seen.Write(buffer[:n])
		if err != nil {
			p.h.t.Fatalf("the terminal never shows %q, but %q: %v", text, &p.seen, err)
		}
	}
}

func (p *pty) types(text string) {
	p.h.t.Helper()
	if _, err := p.master.WriteString(text); err != nil {
		p.h.t.Fatal(err)
	}
}

// ends waits for clove and returns its exit status.
func (p *pty) ends() int {
	p.cmd.Wait() // the exit status is returned
	return p.cmd.ProcessState.ExitCode()
}
