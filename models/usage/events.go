package usage

import "strings"

// lines splits a stream of server-sent events, and gives the data of each to a scanner as
// it comes. Lines end with a line feed, a carriage return, or both.
type lines struct {
	name   [len("data") + 1]byte // of the field
	length int                   // of name; more than its size is another field
	value  bool                  // behind the colon
	space  bool                  // one space may follow the colon
	any    bool                  // the line has a byte
	cr     bool                  // the last byte was a carriage return
	head   [8]byte               // the first bytes of the event's data
	heads  int                   // their number
	rows   int                   // data lines of the event
}

func (l *lines) isData() bool { return string(l.name[:min(l.length, len(l.name))]) == "data" }

// feed takes the next bytes of a stream.
func (l *lines) feed(p []byte, m *Meter) {
	for len(p) > 0 {
		if l.value && !l.space {
			n := lineEnd(p)
			if l.isData() {
				l.data(p[:n], m)
			}
			if p = p[n:]; len(p) == 0 {
				return
			}
		}
		l.take(p[0], m)
		p = p[1:]
	}
}

func lineEnd(p []byte) int {
	for i, b := range p {
		if b == '\n' || b == '\r' {
			return i
		}
	}
	return len(p)
}

// take takes a line's end, its field's name, the colon, or the space behind it.
func (l *lines) take(b byte, m *Meter) {
	tail := b == '\n' && l.cr
	l.cr = b == '\r'
	switch {
	case tail:
	case b == '\n' || b == '\r':
		l.endLine(m)
	case l.value:
		if l.space = false; b != ' ' && l.isData() {
			l.data([]byte{b}, m)
		}
	case b == ':':
		l.any, l.value, l.space = true, true, true
		if l.isData() {
			l.begin(m)
		}
	default:
		l.any = true
		if l.length < len(l.name) {
			l.name[l.length] = b
		}
		l.length = min(l.length+1, len(l.name)+1)
	}
}

// begin is called at each data line. Those of one event are joined by line feeds.
func (l *lines) begin(m *Meter) {
	if l.rows++; l.rows > 1 {
		m.scanner.feed([]byte{'\n'})
	}
}

func (l *lines) data(p []byte, m *Meter) {
	for i := 0; i < len(p) && l.heads < len(l.head); i++ {
		l.head[l.heads] = p[i]
		l.heads++
	}
	if string(l.head[:l.heads]) != done[:min(l.heads, len(done))] {
		m.scanner.feed(p)
	}
}

// done ends the streams of OpenAI's chat completions. It is no JSON.
const done = "[DONE]"

func (l *lines) endLine(m *Meter) {
	if !l.any {
		if l.rows > 0 {
			m.event(strings.TrimRight(string(l.head[:l.heads]), " ") == done)
		}
		l.rows, l.heads = 0, 0
	}
	l.length, l.value, l.space, l.any = 0, false, false, false
}
