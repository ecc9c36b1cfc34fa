package prompt

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// keyboard is the terminal's input while a question stands.
type keyboard struct {
	in     *os.File
	before *unix.Termios // nil: the mode is as it was
	ended  *os.File      // hangs up when the question ends
	stop   func() bool
	typed  typed
	unread []byte
}

// listen takes the terminal's input, and drops what was typed until now. A terminal that edits lines hands keys over as they are
// typed meanwhile: a reply of its own would otherwise be a part of the line.
func (t *Terminal) listen(ctx context.Context) (*keyboard, error) {
	ended, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	k := &keyboard{in: t.In, ended: ended, stop: context.AfterFunc(ctx, func() { end.Close() })}
	fd := int(t.In.Fd())
	if t.Full {
		err = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
	} else if k.before, err = unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		now := *k.before
		now.Lflag &^= unix.ICANON | unix.ECHO
		now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
		err = unix.IoctlSetTermios(fd, unix.TCSETSF, &now)
	}
	if err != nil {
		if k.stop() {
			end.Close()
		}
		return nil, errors.Join(err, ended.Close())
	}
	stop := k.stop
	k.stop = func() bool { // the pipe's other end is closed once
		if stop() {
			end.Close()
		}
		return true
	}
	return k, nil
}

// close gives the input back, without what was typed for the question.
func (k *keyboard) close() {
	k.stop()
	k.ended.Close()
	fd := int(k.in.Fd())
	if k.before != nil {
		_ = unix.IoctlSetTermios(fd, unix.TCSETSF, k.before) // it may be gone
	} else {
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
	}
}

// line returns the next line that was typed at the time or later; false: the question is given up, or the terminal or the
// question has ended. What is typed is shown.
func (k *keyboard) line(show func(string), newline string, from time.Time) (line string, more bool) {
	buffer := make([]byte, 4096)
	for {
		for len(k.unread) > 0 {
			b := k.unread[0]
			k.unread = k.unread[1:]
			switch echo, end := k.typed.take(b); end {
			case leaves:
				return "", false
			case finished:
				show(newline)
				line, k.typed.text = string(k.typed.text), nil
				return line, true
			default:
				show(echo)
			}
		}
		n := k.read(buffer)
		if n <= 0 {
			return "", false
		}
		if time.Now().Before(from) {
			k.typed.skip(buffer[:n])
			continue
		}
		k.unread = buffer[:n]
	}
}

// read waits for input; 0 or less: there is an end.
func (k *keyboard) read(buffer []byte) int {
	fds := []unix.PollFd{{Fd: int32(k.in.Fd()), Events: unix.POLLIN}, {Fd: int32(k.ended.Fd())}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil, fds[1].Revents != 0:
			return 0
		}
		n, err := unix.Read(int(k.in.Fd()), buffer)
		if err != unix.EINTR && err != unix.EAGAIN {
			return n
		}
	}
}

// typed is a line that is typed. Sequences that begin with ESC are no part of it: they are replies of the terminal, keys without
// a character, or pasted text.
type typed struct {
	text     []byte
	at       place
	sequence []byte // behind CSI
	pasted   bool
	spoiled  bool // a string of the terminal's had an end of a line in it: what follows may be its rest
}

type place int

const (
	inText   place = iota
	inEscape       // behind ESC
	inCSI
	inOne    // behind SS3: one more character
	inString // until BEL or ESC \
)

// ending is what a character does to the line.
type ending int

const (
	goesOn ending = iota
	finished
	leaves // ctrl-c or ctrl-d
)

const lineMost = 64 // characters

// skip takes characters that do not count, but for where sequences begin and end.
func (l *typed) skip(all []byte) {
	for _, b := range all {
		_, _ = l.take(b)
	}
	l.text, l.spoiled = nil, false
}

// take takes one character, and returns how it is shown.
func (l *typed) take(b byte) (echo string, end ending) {
	switch {
	case b == '\x1b':
		l.at = inEscape
	case l.at == inEscape:
		l.escaped(b)
	case l.at == inOne:
		l.at = inText
	case l.at == inCSI:
		l.control(b)
	case l.at == inString:
		switch b {
		case '\a':
			l.at = inText
		case '\r', '\n':
			l.at, l.spoiled = inText, true
		}
	case l.pasted:
	default:
		return l.character(b)
	}
	return "", goesOn
}

func (l *typed) escaped(b byte) {
	switch b {
	case '[':
		l.at, l.sequence = inCSI, l.sequence[:0]
	case 'O':
		l.at = inOne
	case ']', 'P', '_', '^', 'X':
		l.at = inString
	default:
		l.at = inText
	}
}

func (l *typed) control(b byte) {
	switch {
	case b >= 0x40 && b <= 0x7e:
		l.at = inText
		switch string(l.sequence) + string(b) {
		case "200~":
			l.pasted = true
		case "201~":
			l.pasted = false
		}
	case len(l.sequence) < sequenceMost:
		l.sequence = append(l.sequence, b)
	}
}

func (l *typed) character(b byte) (echo string, end ending) {
	switch {
	case b == '\r' || b == '\n':
		if l.spoiled {
			l.text, l.spoiled = nil, false
			return "", goesOn
		}
		return "", finished
	case b == 3 || b == 4:
		return "", leaves
	case (b == '\b' || b == 0x7f) && len(l.text) > 0:
		l.text = l.text[:len(l.text)-1]
		return "\b \b", goesOn
	case b == 0x15: // ctrl-u
		echo = ""
		for range l.text {
			echo += "\b \b"
		}
		l.text = nil
		return echo, goesOn
	case b >= ' ' && b < 0x7f && len(l.text) < lineMost:
		l.text = append(l.text, b)
		return string(b), goesOn
	}
	return "", goesOn
}
