package redact

import (
	"bytes"
	"strings"
)

// Redactor takes whole values out of what a server sends: some servers
// repeat a key that they refuse.
//
// An agent can have a server repeat text, and so offer guesses at the value. Which bytes are
// held back, and in which parts they pass, depends on their positions alone, as long as no
// whole value is among them. A redactor that held back what may become the value, or replaced
// a part of it, would confirm a guess one character at a time.
type Redactor struct {
	// Found says that a value was in the text.
	Found bool

	secret  *Secret
	instead string
	hold    int
	lines   bool
	held    []byte // what has come and was not passed on
	looked  int    // the bytes of held in which no event ends
	known   bool   // something but spaces has come
	stream  bool   // it is one of events
}

// Options say how values are taken out.
type Options struct {
	Instead string // in the place of a value; empty: as many stars as it has bytes
	Most    int    // no value is longer, in bytes; the same for all that an agent could compare
	Lines   bool   // what is complete up to the end of a line passes: no value has one
}

// NewRedactor takes values out of one text.
func (s *Secret) NewRedactor(o Options) *Redactor {
	return &Redactor{secret: s, instead: o.Instead, hold: holdBytes(o.Most), lines: o.Lines}
}

// holdBytes come behind a byte before it passes, unless an event ends: the most that a value
// can have in base64, each character of it escaped.
func holdBytes(most int) int { return maxEscape * ((most+2)/3*4 + 4) }

const (
	// blockBytes pass at once.
	blockBytes = 32 << 10
	// spaces may be before a text.
	spaces = " \t\r\n"
)

// Next takes the next bytes of an answer, and returns the parts that may be passed on. Each
// event of a stream is one part. Of another answer, and of an event that is too long, each
// block is.
func (r *Redactor) Next(p []byte) (parts [][]byte) {
	r.held = append(r.held, p...)
	if text := bytes.TrimLeft(p, spaces); !r.known && len(text) > 0 {
		r.known, r.stream = true, text[0] != '{'
	}
	for {
		pass, look := r.ready()
		if pass == 0 {
			return parts
		}
		parts = append(parts, r.take(pass, look))
	}
}

// Rest returns what was held back, at the end of an answer.
func (r *Redactor) Rest() []byte { return r.take(len(r.held), len(r.held)) }

// ready returns how many bytes may pass, and how many values are to be looked for in. No value
// goes beyond the end of an event: it has no line feed.
func (r *Redactor) ready() (pass, look int) {
	near := r.held[:min(len(r.held), blockBytes+r.hold)]
	if r.stream && !r.lines {
		for ; r.looked < len(near); r.looked++ {
			if endsEvent(near[:r.looked+1]) {
				return r.looked + 1, r.looked + 1
			}
		}
	}
	if r.lines {
		if end := bytes.LastIndexByte(near, '\n') + 1; end > 0 {
			return end, end
		}
	}
	if len(near) == blockBytes+r.hold {
		return blockBytes, len(near)
	}
	return 0, 0
}

// endsEvent reports whether a text ends with an empty line behind another.
func endsEvent(text []byte) bool {
	return bytes.HasSuffix(text, []byte("\n\n")) || bytes.HasSuffix(text, []byte("\n\r\n")) || bytes.HasSuffix(text, []byte("\r\r"))
}

// take returns the next bytes without values, which are looked for in more of them.
func (r *Redactor) take(pass, look int) []byte {
	var out []byte
	at := 0
	matches := r.secret.Find(r.held[:look])
	if len(matches) == 0 { // what comes is written behind it
		out, at = r.held[:pass:pass], pass
	}
	for _, m := range matches {
		if m.From >= at && m.From < pass {
			instead := r.instead
			if instead == "" {
				instead = strings.Repeat("*", m.To-m.From)
			}
			out = append(append(out, r.held[at:m.From]...), instead...)
			at = m.To
			r.Found = true
		}
	}
	if at < pass {
		out, at = append(out, r.held[at:pass]...), pass
	}
	r.held = r.held[at:]
	r.looked = max(0, r.looked-at)
	return out
}
