// Package prompt asks a person at a terminal that an agent reads from and writes to.
//
// # Theory of operation
//
// While a question stands, what the agent writes is held before it reaches the terminal: the agent waits then, as it
// does with a full pipe. What is typed goes to the question and never to the agent, and what was typed before, or comes
// at once, is dropped: it was meant for something else. So are the terminal's own replies and pasted text.
//
// An agent that writes to a terminal can make it type: a terminal answers some sequences, and its answer looks like
// what a person types. So a yes has a code there, which is made with the question. Nothing that the agent wrote before
// could know it, and nothing that it writes meanwhile arrives. A wrong code is followed by another one, and after a few
// of them the question is taken off the terminal.
//
// A full-screen program is on the terminal's other screen. The question is shown on the one that the program does not
// use; then the program gets its own back, and is told to draw it again.
package prompt

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is the terminal of a run.
type Terminal struct {
	// In and Out are the terminal itself.
	In, Out *os.File
	// Coded: the agent may write to the terminal, and so a yes needs a code.
	Coded bool
	// Full: the agent has a terminal of its own on this one, which is raw. Redraw then has its program draw again.
	Full   bool
	Redraw func()
	// Dumb: the terminal has no control sequences.
	Dumb bool

	keys sync.Mutex // held by what reads In
	once sync.Once
	turn chan struct{} // holds one element while no question stands, and nothing is written; guards the fields below
	mode modes

	later sync.Mutex // guards the fields below
	asks  bool
	lines []string // for the time after the question
}

// Answer is a word that a person may type, and what it means.
type Answer struct {
	Word, Means string
	Yes         bool // it allows something
}

// Question is put to a person.
type Question struct {
	Lines   []string // without characters that act on a terminal
	Answers []Answer
	// Given takes the answer. After an error, which is shown, another answer is possible.
	Given func(word string) error
}

const (
	// settles is how long nothing counts that comes after the question was shown: nobody reads faster.
	settles = 300 * time.Millisecond
	// wrongMost is after how many wrong codes a question is taken off the terminal.
	wrongMost = 3
	// codeLetters has no letters that look like another one.
	codeLetters = "abcdefghjkmnpqrstuvwxyz23456789"
	codeLength  = 4
	linesMost   = 64 // of those that wait for the end of a question
)

func (t *Terminal) begin() {
	t.once.Do(func() { t.turn = make(chan struct{}, 1); t.turn <- struct{}{} })
}

// Keyboard is held by what reads the terminal for the agent, for as long as it reads and no longer.
func (t *Terminal) Keyboard() sync.Locker { return &t.keys }

// Read is a read of In for the agent: what is typed while a question stands is not for it.
func (t *Terminal) Read(buffer []byte) (int, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(t.In.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return 0, err
		}
		if n, read, err := t.readNow(fds, buffer); read {
			return n, err
		}
	}
}

func (t *Terminal) readNow(fds []unix.PollFd, buffer []byte) (n int, read bool, err error) {
	t.keys.Lock()
	defer t.keys.Unlock()
	if ready, err := unix.Poll(fds, 0); ready == 0 || err != nil {
		return 0, false, nil
	}
	n, err = t.In.Read(buffer)
	return n, true, err
}

// Shown passes the agent's output on, and holds it while a question stands.
func (t *Terminal) Shown(to io.Writer) io.Writer { t.begin(); return shown{t, to} }

type shown struct {
	t  *Terminal
	to io.Writer
}

func (s shown) Write(part []byte) (int, error) {
	<-s.t.turn
	defer func() { s.t.turn <- struct{}{} }()
	s.t.mode.follow(part)
	return s.to.Write(part)
}

// Say writes a line of clove's own, with its end: at once, or after the question. It never waits for a person. false: no
// question stands, and the line is the caller's to write.
func (t *Terminal) Say(line string) bool {
	t.later.Lock()
	defer t.later.Unlock()
	if t.asks && len(t.lines) < linesMost {
		t.lines = append(t.lines, line)
	}
	return t.asks
}

// Ask shows a question until it is answered, given up, or ctx ends, and reports whether it was answered. A terminal that
// has another program in front is waited for.
func (t *Terminal) Ask(ctx context.Context, q Question) (answered bool) {
	t.begin()
	if !t.inFront(ctx) {
		return false
	}
	t.keys.Lock()
	defer t.keys.Unlock()
	select {
	case <-t.turn:
	case <-ctx.Done():
		return false
	}
	defer func() { t.turn <- struct{}{} }()
	if ctx.Err() != nil {
		return false
	}
	keys, err := t.listen(ctx)
	if err != nil {
		return false
	}
	defer keys.close()
	t.open()
	answered = t.put(ctx, q, keys)
	if err := context.Cause(ctx); !answered && err != nil {
		t.print("  " + err.Error())
	}
	t.shut()
	return answered
}

// put shows the question, and reads until there is an answer.
func (t *Terminal) put(ctx context.Context, q Question, keys *keyboard) bool {
	for _, line := range q.Lines {
		t.print(line)
	}
	code := ""
	ready := func() {
		if t.Coded {
			code = newCode()
		}
		t.print("  " + choices(q.Answers, code))
		t.write("> ")
	}
	ready()
	since := time.Now()
	for wrong := 0; ; {
		line, more := keys.line(t.write, t.end(), since.Add(settles))
		if !more || ctx.Err() != nil {
			t.write(t.end())
			return false
		}
		word, given, _ := strings.Cut(strings.ToLower(strings.Join(strings.Fields(line), " ")), " ")
		at := slices.IndexFunc(q.Answers, func(a Answer) bool { return a.Word == word })
		switch {
		case word == "":
		case at < 0 || !q.Answers[at].Yes && given != "":
			t.print("  that is none of the answers")
			ready()
			continue
		case q.Answers[at].Yes && given != code:
			if wrong++; wrong == wrongMost {
				t.print("  that is not the code; the question is not asked here again")
				return false
			}
			t.print("  that is not the code; here is another one")
			ready()
			continue
		default:
			if err := q.Given(word); err != nil {
				t.print("  " + err.Error())
				ready()
				continue
			}
			return true
		}
		t.write("> ")
	}
}

// choices says what may be typed.
func choices(answers []Answer, code string) string {
	var all []string
	for _, a := range answers {
		word := a.Word
		if a.Yes && code != "" {
			word += " " + code
		}
		all = append(all, word+": "+a.Means)
	}
	return strings.Join(all, "; ")
}

func newCode() string {
	random := make([]byte, codeLength)
	_, _ = rand.Read(random) // it does not fail
	for i, b := range random {
		random[i] = codeLetters[int(b)%len(codeLetters)]
	}
	return string(random)
}

// print writes a line. A raw terminal does not return to the first column by itself.
func (t *Terminal) print(line string) { t.write(line + t.end()) }

func (t *Terminal) end() string {
	if t.Full {
		return "\r\n"
	}
	return "\n"
}

func (t *Terminal) write(text string) { fmt.Fprint(t.Out, text) }

// inFront waits until this program may read the terminal; false: ctx has ended.
func (t *Terminal) inFront(ctx context.Context) bool {
	for said := false; ; said = true {
		group, err := unix.IoctlGetInt(int(t.In.Fd()), unix.TIOCGPGRP)
		if err != nil || group == unix.Getpgrp() { // an error: it is not the controlling terminal, which has no jobs
			return ctx.Err() == nil
		}
		if !said {
			t.print("clove: a question waits here; fg shows it")
		}
		select {
		case <-time.After(settles):
		case <-ctx.Done():
			return false
		}
	}
}
