package main

import (
	"bytes"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/client"
)

// userTerminal is the caller's terminal while a session has it. Its zero value
// stands for streams that are no terminal.
type userTerminal struct {
	in     *os.File
	before *unix.Termios // nil: it was not changed
}

// openTerminal makes the caller's terminal raw where the agent has one of its
// own, whose line discipline does what the caller's did.
func (p *program) openTerminal(wanted bool) (*userTerminal, error) {
	t := &userTerminal{in: p.in}
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
	t.before = before
	return t, nil
}

func (t *userTerminal) restore() {
	if t.before != nil {
		_ = unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETS, t.before) // it may be gone
	}
}

// size is nil without a terminal.
func (t *userTerminal) size() *api.SessionSize {
	window, err := unix.IoctlGetWinsize(int(t.in.Fd()), unix.TIOCGWINSZ)
	if t.before == nil || err != nil || window.Row == 0 {
		return nil
	}
	return &api.SessionSize{Rows: window.Row, Columns: window.Col}
}

// follow passes changes of the window on until the program ends.
func (t *userTerminal) follow(session *client.Session) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, unix.SIGWINCH)
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
	seen int
}

func (k *keyWatch) filter(typed []byte) (pass []byte, left bool) {
	if len(k.keys) == 0 {
		return typed, false
	}
	var b bytes.Buffer
	for _, key := range typed {
		if key != k.keys[k.seen] {
			b.Write(k.keys[:k.seen])
			k.seen = 0
		}
		if key != k.keys[k.seen] {
			b.WriteByte(key)
			continue
		}
		if k.seen++; k.seen == len(k.keys) {
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
