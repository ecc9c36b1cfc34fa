package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const patience = 20 * time.Second

// window is a terminal, as the person in front of it has it.
type window struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	mu     sync.Mutex // guards seen
	seen   bytes.Buffer
	answer func(shown string) string // what the terminal itself types when it has shown something; nil: nothing
}

func newWindow(t *testing.T) *window {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &window{t: t, master: master, slave: slave}
	read := make(chan struct{})
	go w.read(read)
	t.Cleanup(func() { slave.Close(); <-read; master.Close() })
	return w
}

func (w *window) read(done chan<- struct{}) {
	defer close(done)
	buffer := make([]byte, 4096)
	for {
		n, err := w.master.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.seen.Write(buffer[:n])
		answer, text := w.answer, w.seen.String()
		w.mu.Unlock()
		if answer != nil {
			if typed := answer(text); typed != "" {
				w.types(typed)
			}
		}
	}
}

func (w *window) shown() string { w.mu.Lock(); defer w.mu.Unlock(); return w.seen.String() }

func (w *window) types(text string) {
	if _, err := w.master.WriteString(text); err != nil {
		w.t.Error(err)
	}
}

// shows waits until the terminal has shown a pattern n times, and returns the first group of the last one.
func (w *window) shows(pattern string, n int) string {
	w.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(w.shown(), -1)
		if len(all) >= n {
			return all[len(all)-1][len(all[len(all)-1])-1]
		}
		if time.Now().After(until) {
			w.t.Fatalf("it never shows %s %d times: %q", pattern, n, w.shown())
		}
	}
}

// settled waits until what is typed counts.
func settled() { time.Sleep(settles + 20*time.Millisecond) }

// asked is a question that stands.
type asked struct {
	done  chan bool
	words chan string
}

func (w *window) ask(ctx context.Context, terminal *Terminal) asked {
	w.t.Helper()
	a := asked{make(chan bool, 1), make(chan string, 8)}
	q := Question{Lines: []string{"may it?"}, Answers: []Answer{{"y", "allow", true}, {"n", "refuse", false}}, Given: func(word string) error { a.words <- word; return nil }}
	go func() { a.done <- terminal.Ask(ctx, q) }()
	w.shows(`> `, 1)
	return a
}

func (a asked) ends(t *testing.T) (answered bool) {
	t.Helper()
	select {
	case answered = <-a.done:
	case <-time.After(patience):
		t.Fatal("the question stands")
	}
	return answered
}

const withCode = `y ([a-z0-9]{4}): allow`

func (w *window) terminal() *Terminal { return &Terminal{In: w.slave, Out: w.slave, Coded: true} }

// A yes has the code of the question. What was typed before is no answer and reaches nothing, and the terminal edits lines
// again afterwards.
func TestAYesHasACode(t *testing.T) {
	t.Parallel()
	w := newWindow(t)
	before, err := unix.IoctlGetTermios(int(w.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	w.types("y\nn\n")
	w.shows("n\r\n", 1)
	a := w.ask(t.Context(), w.terminal())
	settled()
	w.types("y\r")
	w.shows("another one", 1)
	code := w.shows(withCode, 2)
	w.types("x\x7fY  " + code + "\r")
	if !a.ends(t) || <-a.words != "y" {
		t.Errorf("%q", w.shown())
	}
	after, err := unix.IoctlGetTermios(int(w.slave.Fd()), unix.TCGETS)
	if err != nil || after.Lflag != before.Lflag {
		t.Errorf("%x, not %x: %v", after.Lflag, before.Lflag, err)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.slave.Fd()), Events: unix.POLLIN}}, 0); n != 0 {
		t.Errorf("something is left to read: %v", err)
	}
}

// An agent has the terminal type an answer. With a code it is none; the control is the same without one.
func TestATerminalDoesNotAnswerForThePerson(t *testing.T) {
	t.Parallel()
	for _, coded := range []bool{true, false} {
		w := newWindow(t)
		terminal := w.terminal()
		terminal.Coded = coded
		sent := make(chan struct{})
		// The terminal is slow: its answers come when the question has settled.
		w.answer = func(shown string) string {
			if strings.Contains(shown, "\x1b[forged") && strings.Contains(shown, "> ") {
				w.mu.Lock()
				w.answer = nil
				w.mu.Unlock()
				settled()
				close(sent)
				return "\x1b[?62;c\x1b]11;rgb:0/0/0\x1b\\\x1bP1$r0m\x1b\\\x1b[12;40Ry\r"
			}
			return ""
		}
		fmt.Fprint(terminal.Shown(w.slave), "\x1b[forged")
		ctx, cancel := context.WithCancel(t.Context())
		a := w.ask(ctx, terminal)
		select {
		case <-sent:
		case <-time.After(patience):
			t.Fatalf("%q", w.shown())
		}
		if coded {
			w.shows("another one", 1)
			cancel()
		}
		if answered := a.ends(t); answered == coded {
			t.Errorf("with a code %v: answered %v: %q", coded, answered, w.shown())
		}
		cancel()
	}
}

// Replies, keys without a character, and pasted text are no part of what is typed.
func TestSequencesAreNotTyped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ab\r": "ab", "a\x1b[Ab\r": "ab", "\x1b[?1;2c\x1b[3;4Rn\r": "n", "\x1b]11;rgb:0/0/0\ano\r": "no",
		"\x1b]52;c;y\x1b\\n\r": "n", "\x1bPy\ry\rn\r": "n", "\x1b[200~y\ry\x1b[201~n\r": "n", "\x1bOPn\r": "n", "y\x15n\r": "n",
		"y\xff\x00é\r": "y",
	} {
		var l typed
		got := ""
		for _, b := range []byte(text) {
			if _, end := l.take(b); end == finished && got == "" {
				got = string(l.text)
			}
		}
		if got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// What the agent writes meanwhile is held, and comes behind the question. So do clove's own lines.
func TestOutputIsHeld(t *testing.T) {
	t.Parallel()
	w := newWindow(t)
	terminal := w.terminal()
	out := terminal.Shown(w.slave)
	fmt.Fprint(out, "first\n")
	a := w.ask(t.Context(), terminal)
	written := make(chan struct{})
	go func() { fmt.Fprint(out, "second\n"); close(written) }()
	if !terminal.Say("third\n") {
		t.Error("a line of clove's own is not held")
	}
	settled()
	if strings.Contains(w.shown(), "second") || strings.Contains(w.shown(), "third") {
		t.Errorf("%q", w.shown())
	}
	w.types("n\n")
	if !a.ends(t) {
		t.Error("it is not answered")
	}
	<-written
	w.shows(`(?s)n\r\n.*third.*second`, 1)
	if terminal.Say("fourth\n") {
		t.Error("it is held for ever")
	}
}

// A question ends with its context, and says why; after some wrong codes; and at ctrl-c.
func TestAQuestionIsTakenOff(t *testing.T) {
	t.Parallel()
	w := newWindow(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	a := w.ask(ctx, w.terminal())
	cancel(errors.New("answered elsewhere"))
	if a.ends(t) {
		t.Error("it was answered")
	}
	w.shows("answered elsewhere", 1)
	for _, keys := range []string{"y aaaa\ry bbbb\ry cccc\ry dddd\r", "\x04"} {
		w := newWindow(t)
		a := w.ask(t.Context(), w.terminal())
		settled()
		w.types(keys)
		if a.ends(t) {
			t.Errorf("%q: %q", keys, w.shown())
		}
	}
}

// A full-screen program is on the other screen, and gets it back as it had it.
func TestThePictureIsGivenBack(t *testing.T) {
	t.Parallel()
	for begins, want := range map[string]string{
		"":                          `(?s)\x1b\[\?1049h.*may it.*\x1b\[\?2004l\x1b\[\?1049l$`,
		"\x1b[?1049h\x1b[?25":       `(?s)\x1b\[\?1049l.*may it.*\x1b\[\?2004l\x1b\[\?1049h$`,
		"\x1b[?1;47;2004h\x1b[?25l": `(?s)\x1b\[\?47l.*may it.*\x1b\[\?47h\x1b\[\?25l$`,
	} {
		w := newWindow(t)
		terminal := w.terminal()
		terminal.Full = true
		drawn := false
		terminal.Redraw = func() { drawn = true }
		fmt.Fprint(terminal.Shown(w.slave), begins)
		ctx, cancel := context.WithCancel(t.Context())
		a := w.ask(ctx, terminal)
		cancel()
		a.ends(t)
		w.shows(want, 1)
		if !drawn || strings.Contains(begins, "2004h") && strings.Contains(w.shown(), "2004l") {
			t.Errorf("%v %q", drawn, w.shown())
		}
	}
}
