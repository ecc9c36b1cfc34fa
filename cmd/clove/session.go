package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/client"
	"clove.run/clove/daemon/supervisor"
	terminal "clove.run/clove/internal/screen"
	"clove.run/clove/runtime"
)

const flagDetachKeys = "detach-keys"

// sessions are the commands that join the streams of a process in a sandbox.
type sessions program

// userTerminal is the caller's terminal during a session.
type userTerminal struct {
	in, out *os.File
	changed bool
	restore func() // restores its modes; may be called again
}

// openTerminal makes the caller's terminal raw if the agent has a terminal of its own,
// whose line discipline then edits lines and makes signals. Otherwise the caller's
// terminal keeps editing lines; if there are detach keys, it hands those over as they
// are typed. It is restored if clove is killed by a signal.
func (s *screen) openTerminal(wanted bool, keys []byte) (*userTerminal, error) {
	t, err := s.changeTerminal(wanted, keys)
	if err == nil && t.changed {
		go t.restoreWhenKilled(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	}
	return t, err
}

// changeTerminal is openTerminal for a caller that handles signals itself.
func (s *screen) changeTerminal(wanted bool, keys []byte) (*userTerminal, error) {
	t := &userTerminal{in: s.in, out: s.out, restore: func() {}}
	if !wanted && len(keys) == 0 || !isTerminal(s.in) {
		return t, nil
	}
	before, err := unix.IoctlGetTermios(int(s.in.Fd()), unix.TCGETS)
	if err != nil {
		return t, err
	}
	after := *before
	if wanted {
		supervisor.MakeRaw(&after)
	} else {
		passKeys(&after, keys)
	}
	if err := unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, &after); err != nil {
		return t, err
	}
	s.raw = wanted
	t.restore = sync.OnceFunc(func() {
		_ = unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETS, before) // it may be gone
		s.raw = false
	})
	t.changed = true
	return t, nil
}

// passKeys lets a terminal that edits lines pass the detach keys on: it takes away what
// they mean to the terminal, ctrl-q of its flow control for example. The last key ends
// a line, so that Enter need not follow. A letter cannot: it is in ordinary text.
func passKeys(t *unix.Termios, keys []byte) {
	for i, key := range t.Cc {
		// VMIN and VTIME are in the same array, but are numbers and not keys.
		if i != unix.VMIN && i != unix.VTIME && slices.Contains(keys, key) {
			t.Cc[i] = 0 // _POSIX_VDISABLE of termios(3)
		}
	}
	if last := keys[len(keys)-1]; last < ' ' {
		t.Cc[unix.VEOL] = last
	}
}

// restoreWhenKilled restores the caller's terminal when clove is ended by a signal from
// outside. It is not ctrl-c: a raw terminal makes no signals.
func (t *userTerminal) restoreWhenKilled(by ...os.Signal) {
	killed := make(chan os.Signal, 1)
	signal.Notify(killed, by...)
	t.dieBy((<-killed).(unix.Signal))
}

// dieBy ends clove by a signal with its default action, so that the shell sees how clove
// ended.
func (t *userTerminal) dieBy(number unix.Signal) {
	t.restore()
	signal.Reset(number)
	_ = unix.Kill(unix.Getpid(), number)
}

// size is nil if neither stdin nor stdout is a terminal.
func (t *userTerminal) size() *api.SessionSize {
	for _, file := range []*os.File{t.in, t.out} {
		if window, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && window.Row > 0 {
			return &api.SessionSize{Rows: window.Row, Columns: window.Col}
		}
	}
	return nil
}

// redraw has the program on the other side draw again: its terminal is one row smaller for a moment.
func (t *userTerminal) redraw(session *client.Session) {
	size := t.size()
	if size == nil || size.Rows < 2 {
		return
	}
	if session.Resize(api.SessionSize{Rows: size.Rows - 1, Columns: size.Columns}) == nil {
		time.Sleep(runtime.RedrawTime)
		_ = session.Resize(*size) // it may be over
	}
}

// follow passes changes of the window's size on until leave is called, which closes the session.
func (t *userTerminal) follow(session *client.Session) (leave func()) {
	changes, over, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(changes, unix.SIGWINCH)
	changes <- unix.SIGWINCH // it may have changed while the session began
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			case <-changes:
				if size := t.size(); size != nil && session.Resize(*size) != nil {
					return
				}
			}
		}
	}()
	return func() {
		session.Close() // first: the goroutine may be blocked until then
		signal.Stop(changes)
		close(over)
		<-done
	}
}

// showOutput prints a piece of the other side's output.
func (s *screen) showOutput(piece api.SessionOutput) error {
	if piece.Lost > 0 {
		s.say("clove", cyan, size(piece.Lost)+" of output were lost: this terminal is too slow")
	}
	to := s.out
	if piece.Stream == "stderr" {
		to = s.err
	}
	_, err := s.display(to).Write(piece.Data)
	return err
}

// showOrLose is showOutput for a session that goes on when output is lost, but not when its reader
// has gone.
func (s *screen) showOrLose(piece api.SessionOutput) error {
	if err := s.showOutput(piece); errors.Is(err, unix.EPIPE) {
		return err
	}
	return nil
}

// feed passes input on until it ends or the detach keys are typed. ended is called at
// the end of the input. If it is nil, the end is ignored, so that ctrl-d on a terminal
// ends nothing and the detach keys still work.
func (s *screen) feed(session *client.Session, keys []byte, ended func()) {
	k := keyWatch{keys: keys}
	buffer := make([]byte, 32<<10)
	read := s.in.Read
	if s.asking != nil {
		read = s.asking.terminal.Read
	}
	for {
		n, err := read(buffer)
		pass, left := buffer[:n], false
		// Bytes of a file may look like the keys.
		if isTerminal(s.in) {
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
		switch {
		case err == nil || ended == nil && isTerminal(s.in): // a terminal that was hung up is none any more
		case ended == nil:
			return
		default:
			ended()
			return
		}
	}
}

// keyWatch finds the detach keys in what is typed. Keys that turn out to be no detach
// sequence are passed on late.
type keyWatch struct {
	keys []byte
	seen int // how many of them were typed; these are held back
}

// filter returns what is to be passed on, and whether the sequence is complete.
func (k *keyWatch) filter(typed []byte) (pass []byte, left bool) {
	if len(k.keys) == 0 {
		return typed, false
	}
	var b bytes.Buffer
	for _, key := range typed {
		// The bytes that were held back may end with the beginning of another attempt.
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

// parseKeys reads docker's form: letters and ctrl-LETTER, separated by commas.
func parseKeys(text string) ([]byte, error) {
	var keys []byte
	for _, word := range strings.Split(text, ",") {
		letter, control := strings.CutPrefix(word, "ctrl-")
		if len(letter) != 1 {
			return nil, invalid(flagDetachKeys, "write keys such as ctrl-p,ctrl-q", "%q is not a key", word)
		}
		key := letter[0]
		if control {
			// A control character is the letter's code without its upper bits: ctrl-a
			// is 1.
			if key = key &^ 0x20; key < '@' || key > '_' {
				return nil, invalid(flagDetachKeys, "write keys such as ctrl-p,ctrl-q", "%q is not a key", word)
			}
			key -= '@'
		}
		keys = append(keys, key)
	}
	return keys, nil
}

const flagClipboard = "clipboard"

// clipboardUsage is of run, exec and attach.
const clipboardUsage = "let the agent's output set your terminal's clipboard (OSC 52)"

// displayFor makes what an agent's output passes on its way to a terminal. Both streams have
// one, because they lead to the same terminal.
func (s *screen) displayFor(c *cli.Context) {
	filter := terminal.New(c.Bool(flagClipboard))
	s.display = func(to *os.File) io.Writer {
		if !isTerminal(to) {
			return s.lost.noting(to)
		}
		return s.lost.noting(filter.To(to))
	}
}
