package prompt

import (
	"strconv"
	"strings"
)

// modes are those of the terminal that an agent's output has changed.
type modes struct {
	other  int  // the number of the mode in which it is on the other screen; 0: it is not
	hidden bool // the cursor
	pastes bool // pasted text comes in brackets
	inside bool // the last line has no end

	sequence []byte // that has begun; nil: none
}

// sequenceMost bounds a control sequence, in bytes. A longer one is no mode's.
const sequenceMost = 128

// follow looks at what is written.
func (m *modes) follow(part []byte) {
	for _, b := range part {
		switch {
		case b == '\x1b':
			m.sequence = append(m.sequence[:0], b)
		case len(m.sequence) == 0:
			m.inside = b != '\n'
		case len(m.sequence) == 1 && b == '[':
			m.sequence = append(m.sequence, b)
		case len(m.sequence) == 1:
			if b == 'c' { // everything is as at the beginning
				*m = modes{}
			}
			m.sequence = m.sequence[:0]
		case b >= 0x40 && b <= 0x7e:
			m.set(string(m.sequence[2:]), b)
			m.sequence = m.sequence[:0]
		case len(m.sequence) < sequenceMost:
			m.sequence = append(m.sequence, b)
		}
	}
}

func (m *modes) set(parameters string, final byte) {
	list, private := strings.CutPrefix(parameters, "?")
	if !private || final != 'h' && final != 'l' {
		return
	}
	on := final == 'h'
	for text := range strings.SplitSeq(list, ";") {
		switch number, _ := strconv.Atoi(text); number {
		case 47, 1047, 1049:
			if m.other = 0; on {
				m.other = number
			}
		case 25:
			m.hidden = !on
		case 2004:
			m.pastes = on
		}
	}
}

// plain ends what the agent has begun and not ended, and undoes what could hide a part of a question: output that is
// held back, margins, colours, other characters, insertion, and lines that do not wrap.
const plain = "\x18\x1b\\\x1b[?2026l\x1b[?69l\x1b7\x1b[r\x1b8\x1b[0m\x1b(B\x0f\x1b[4l\x1b[?7h\x1b[?25h\x1b[?2004h"

// open makes place for a question.
func (t *Terminal) open() {
	t.later.Lock()
	t.asks = true
	t.later.Unlock()
	m := &t.mode
	m.sequence = m.sequence[:0]
	switch {
	case t.Dumb:
		t.write("\r\n")
		return
	case m.other != 0:
		t.write("\x18\x1b\\\x1b[?" + strconv.Itoa(m.other) + "l" + plain + "\r\n")
	case t.Full:
		t.write("\x18\x1b\\\x1b[?1049h" + plain + "\x1b[H\x1b[2J")
	case m.inside:
		t.write(plain + "\r\n")
	default:
		t.write(plain)
	}
	if t.Full {
		t.write("\x1b[>0u") // keys come as characters, in terminals that could send something else
	}
	m.inside = false
}

// shut gives the terminal back as it was, and writes what had to wait.
func (t *Terminal) shut() {
	m := &t.mode
	if !t.Dumb {
		text := "\x1b[0m"
		if t.Full {
			text += "\x1b[<u"
		}
		if !m.pastes {
			text += "\x1b[?2004l"
		}
		switch {
		case m.other != 0:
			text += "\x1b[?" + strconv.Itoa(m.other) + "h"
		case t.Full:
			text += "\x1b[?1049l"
		}
		if m.hidden {
			text += "\x1b[?25l"
		}
		t.write(text)
	}
	t.later.Lock()
	for _, line := range t.lines {
		t.write(line)
	}
	t.asks, t.lines = false, nil
	t.later.Unlock()
	if t.Full && t.Redraw != nil {
		t.Redraw()
	}
}
