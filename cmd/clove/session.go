package main

import (
	"bytes"
	"os"
	"os/signal"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/client"
)

// userTerminal is the caller's terminal while a session has it.
type userTerminal struct {
	in, out *os.File
	restore func() // gives it back as it was; may be called again
}

// openTerminal makes the caller's terminal raw where the agent has one of its
// own, whose line discipline does what the caller's did.
func (p *program) openTerminal(wanted bool) (*userTerminal, error) {
	t := &userTerminal{in: p.in, out: p.out, restore: func() {}}
	if !wanted || !isTerminal(p.in) {
		return t, nil
	}
	before, err := unix.IoctlGetTermios(int(p.in.Fd()), unix.TCGETS)
	if err != nil {
		return t, err
	}
	raw := *before
	// cfmakeraw(3).
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(p.in.Fd()), unix.TCSETS, &raw); err != nil {
		return t, err
	}
	p.raw = true
	t.restore = sync.OnceFunc(func() {
		_ = unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETS, before) // it may be gone
		p.raw = false
	})
	go t.restoreWhenKilled()
	return t, nil
}

// restoreWhenKilled leaves the caller's terminal as it was when clove is ended
// from outside: keys no longer make a signal, so it is not ctrl-c.
func (t *userTerminal) restoreWhenKilled() {
	killed := make(chan os.Signal, 1)
	signal.Notify(killed, unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	number := (<-killed).(unix.Signal)
	t.restore()
	signal.Reset(number)
	_ = unix.Kill(unix.Getpid(), number)
}

// size is nil where neither side of clove is a terminal.
func (t *userTerminal) size() *api.SessionSize {
	for _, file := range []*os.File{t.in, t.out} {
		if window, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && window.Row > 0 {
			return &api.SessionSize{Rows: window.Row, Columns: window.Col}
		}
	}
	return nil
}

// follow passes changes of the window on until the program ends.
func (t *userTerminal) follow(session *client.Session) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, unix.SIGWINCH)
	changes <- unix.SIGWINCH // it may have changed while the session began
	for range changes {
		if size := t.size(); size != nil && session.Resize(*size) != nil {
			return
		}
	}
}

// show writes what the other side wrote.
func (p *program) show(piece api.SessionOutput) error {
	if piece.Lost > 0 {
		p.say("clove", cyan, size(piece.Lost)+" of output were lost: this terminal is too slow")
	}
	to := p.out
	if piece.Stream == "stderr" {
		to = p.err
	}
	_, err := to.Write(piece.Data)
	return err
}

// feed passes input on until it ends or the detach keys are typed. ended is
// what the end of the input means.
func (p *program) feed(session *client.Session, keys []byte, ended func()) {
	k := keyWatch{keys: keys}
	buffer := make([]byte, 32<<10)
	for {
		n, err := p.in.Read(buffer)
		pass, left := buffer[:n], false
		if isTerminal(p.in) {
			pass, left = k.filter(buffer[:n])
		}
		if len(pass) > 0 {
			if _, err := session.Write(pass); err != nil {
				return
			}
		}
		if left {
			_ = session.Detach()
			return
		}
		if err != nil {
			ended()
			return
		}
	}
}

// keyWatch finds the detach keys in what is typed. Keys that only began the
// sequence are passed on late.
type keyWatch struct {
	keys []byte
	seen int // how many of them were typed, and are held back
}

func (k *keyWatch) filter(typed []byte) (pass []byte, left bool) {
	if len(k.keys) == 0 {
		return typed, false
	}
	var b bytes.Buffer
	for _, key := range typed {
		// What was held back may end with the beginning of another attempt.
		held := append(bytes.Clone(k.keys[:k.seen]), key)
		for !bytes.HasPrefix(k.keys, held) {
			b.WriteByte(held[0])
			held = held[1:]
		}
		if k.seen = len(held); k.seen == len(k.keys) {
			return b.Bytes(), true
		}
	}
	return b.Bytes(), false
}

// parseKeys reads docker's form: letters and ctrl-LETTER, with commas between.
func parseKeys(text string) ([]byte, error) {
	var keys []byte
	for _, word := range strings.Split(text, ",") {
		letter, control := strings.CutPrefix(word, "ctrl-")
		if len(letter) != 1 {
			return nil, invalid(flagDetachKeys, "write keys such as ctrl-p,ctrl-q", "%q is not a key", word)
		}
		key := letter[0]
		if control {
			if key = key &^ 0x20; key < '@' || key > '_' {
				return nil, invalid(flagDetachKeys, "write keys such as ctrl-p,ctrl-q", "%q is not a key", word)
			}
			key -= '@'
		}
		keys = append(keys, key)
	}
	return keys, nil
}
