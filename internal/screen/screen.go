// Package screen removes sequences from an agent's output that make a terminal type or disclose
// something. They ask for the clipboard (OSC 52), the window's title (CSI 20 t and 21 t),
// settings (DECRQSS) and the answerback (ENQ). The terminal types its answer, as if the person
// had, so an agent that chooses the title writes commands for the next shell.
//
// Theory of operation. A Screen follows the states of a terminal in UTF-8, after DEC's parser:
// controls of one byte and of two, strings, and control bytes inside of sequences. It holds the
// beginning of a sequence back until it is known which one it is, at most mostHeld bytes; a
// terminal shows nothing of that either. Everything else passes as it came, byte for byte: a
// write that is cut anywhere gives the same bytes.
package screen

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Screen is one terminal. All that is written to it must pass the same one: a sequence that
// begins on one stream may end on another.
type Screen struct {
	clipboard bool // OSC 52 passes

	mu      sync.Mutex // guards the following
	state   state
	held    []byte // of the sequence that has begun, as it came
	body    []byte // what of it counts: without its introducer and control bytes
	partial []byte // of a character in UTF-8
	out     []byte
}

type state int

const (
	ground   state = iota // text, and strings that pass
	escape                // behind ESC
	control               // behind CSI
	command               // behind OSC, in its number
	device                // behind DCS, in its parameters
	swallow               // in a string that is left out
	swallowE              // behind ESC in such a string
)

// mostHeld bounds a sequence, in bytes. A longer one has no meaning, and is left out.
const mostHeld = 1024

// New returns the filter of a terminal. With clipboard, OSC 52 passes.
func New(clipboard bool) *Screen { return &Screen{clipboard: clipboard} }

// To is one of the streams that lead to the terminal. It passes on what is known to be
// harmless. Bytes that it holds back when its output ends are never shown.
func (w *Screen) To(to io.Writer) io.Writer { return stream{w, to} }

type stream struct {
	screen *Screen
	to     io.Writer
}

func (s stream) Write(part []byte) (int, error) {
	w := s.screen
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = w.out[:0]
	for _, b := range part {
		w.decode(b)
	}
	if len(w.out) == 0 {
		return len(part), nil
	}
	if _, err := s.to.Write(w.out); err != nil {
		return 0, err
	}
	return len(part), nil
}

// text stands for a character that is no control.
const text = -1

// decode collects the bytes of a character. A control of one byte (C1) is there as its
// character in UTF-8, or as a byte that is no part of any character.
func (w *Screen) decode(b byte) {
	if len(w.partial) == 0 && b < utf8.RuneSelf {
		w.next(int(b), b)
		return
	}
	w.partial = append(w.partial, b)
	if !utf8.FullRune(w.partial) {
		return
	}
	r, size := utf8.DecodeRune(w.partial)
	all := w.partial
	w.partial = nil
	code := text
	switch {
	case r == utf8.RuneError && size == 1 && all[0] >= 0x80 && all[0] < 0xa0:
		code = int(all[0])
	case r >= 0x80 && r < 0xa0:
		code = int(r)
	}
	w.next(code, all[:size]...)
	for _, rest := range all[size:] { // behind a byte that began no character
		w.decode(rest)
	}
}

// Controls.
const (
	enq = 0x05
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
	dcs = 0x90
	csi = 0x9b
	st  = 0x9c
	osc = 0x9d
)

// next takes one character: what it is, and its bytes.
func (w *Screen) next(code int, raw ...byte) {
	switch {
	case code == enq: // no terminal needs it, wherever it is
	case w.state == swallow || w.state == swallowE:
		w.left(code, raw)
	case code == esc:
		w.begin(escape, raw)
	case code == csi:
		w.begin(control, raw)
	case code == osc:
		w.begin(command, raw)
	case code == dcs:
		w.begin(device, raw)
	case w.state == ground:
		w.out = append(w.out, raw...)
	case code == can || code == sub || code >= 0x80:
		w.pass(raw)
	case len(w.held) >= mostHeld:
		w.drop(swallow)
	case (code < 0x20 && code != text && !(code == bel && w.state == command)) || code == del:
		w.held = append(w.held, raw...) // carried out inside of a sequence, or ignored
	default:
		w.held = append(w.held, raw...)
		w.inside(code)
	}
}

// begin holds a new sequence back. The one before it was broken off, which is as harmless as
// its text.
func (w *Screen) begin(s state, raw []byte) {
	w.out = append(w.out, w.held...)
	w.held, w.body, w.state = append(w.held[:0], raw...), w.body[:0], s
}

// pass lets the sequence pass with its last character.
func (w *Screen) pass(raw []byte) {
	w.out = append(append(w.out, w.held...), raw...)
	w.held, w.state = w.held[:0], ground
}

// drop leaves the sequence out.
func (w *Screen) drop(then state) { w.held, w.state = w.held[:0], then }

// inside decides by the character that was held last.
func (w *Screen) inside(code int) {
	switch w.state {
	case escape:
		w.escaped(code)
	case control:
		w.controlled(code)
	case command:
		w.commanded(code)
	case device:
		w.deviced(code)
	}
}

func (w *Screen) escaped(code int) {
	switch {
	case len(w.body) > 0 || code == text: // ESC ( ] is no OSC
		if code < 0x20 || code > 0x2f {
			w.pass(nil)
		}
	case code == '[':
		w.state = control
	case code == ']':
		w.state = command
	case code == 'P':
		w.state = device
	case code >= 0x20 && code <= 0x2f:
		w.body = append(w.body, byte(code))
	default:
		w.pass(nil)
	}
}

func (w *Screen) controlled(code int) {
	switch {
	case code == text:
		w.pass(nil)
	case code < 0x40:
		w.body = append(w.body, byte(code))
	case code == 't' && reports(w.body):
		w.drop(ground)
	default:
		w.pass(nil)
	}
}

// reports: the parameters of CSI t ask for the title of the icon or the window.
func reports(parameters []byte) bool {
	for _, b := range parameters {
		if b < '0' || b > ';' { // a private or another control
			return false
		}
	}
	number := leading(parameters)
	return number == 20 || number == 21
}

// leading is the number before the first other character; large ones are all the same.
func leading(parameters []byte) (number int) {
	for _, b := range parameters {
		if b < '0' || b > '9' {
			break
		}
		number = min(number*10+int(b-'0'), 1<<16)
	}
	return number
}

const clipboardCommand = 52

func (w *Screen) commanded(code int) {
	switch {
	case code >= '0' && code <= '9':
		w.body = append(w.body, byte(code))
	case leading(w.body) == clipboardCommand && !w.clipboard:
		if w.drop(swallow); code == bel {
			w.state = ground
		}
	default:
		w.pass(nil)
	}
}

func (w *Screen) deviced(code int) {
	switch {
	case code == text:
		w.pass(nil)
	case code < 0x40:
		w.body = append(w.body, byte(code))
	case code == 'q' && len(w.body) > 0 && w.body[len(w.body)-1] == '$':
		w.drop(swallow)
	default:
		w.pass(nil)
	}
}

// left takes a character of a string that is left out, up to what ends it.
func (w *Screen) left(code int, raw []byte) {
	switch {
	case w.state == swallowE && code == '\\', code == bel, code == can, code == sub, code == st:
		w.state = ground
	case code == esc:
		w.state = swallowE
	case w.state == swallowE || code >= 0x80: // a new sequence breaks the string off
		again := w.state == swallowE
		if w.state = ground; again {
			w.next(esc, esc)
		}
		w.next(code, raw...)
	}
}
