package upstream

import (
	"bytes"

	"clove.run/clove/models/link"
)

// redactor takes the whole key of a provider out of what the provider sends: some servers
// repeat a key that they refuse.
//
// An agent can have a provider repeat text, and so offer guesses at the key. Which bytes are
// held back, and in which parts they pass, depends on their positions alone, as long as the
// whole key is not among them. A redactor that held back what may become the key, or replaced
// a part of it, would confirm a guess one character at a time.
type redactor struct {
	secret *secret
	held   []byte // what has come and was not passed on
	looked int    // the bytes of held in which no event ends
	known  bool   // something but spaces has come
	stream bool   // it is one of events
	found  bool   // the key was in the answer
}

// redacted stands in the place of a key.
const redacted = "[key]"

const (
	// holdBytes come behind a byte before it passes, unless an event ends: the most that a key
	// can have in base64, each character of it escaped. It is the same for all keys.
	holdBytes = maxEscape * ((link.MaxKey+2)/3*4 + 4)
	// blockBytes pass at once.
	blockBytes = 32 << 10
)

// next takes the next bytes of an answer, and returns the parts that may be passed on. Each
// event of a stream is one part. Of another answer, and of an event that is too long, each
// block is.
func (r *redactor) next(p []byte) (parts [][]byte) {
	r.held = append(r.held, p...)
	if text := bytes.TrimLeft(p, spaces); !r.known && len(text) > 0 {
		r.known, r.stream = true, isStream(text)
	}
	for {
		pass, look := r.ready()
		if pass == 0 {
			return parts
		}
		parts = append(parts, r.take(pass, look))
	}
}

// rest returns what was held back, at the end of an answer.
func (r *redactor) rest() []byte { return r.take(len(r.held), len(r.held)) }

// ready returns how many bytes may pass, and how many the key is to be looked for in. No key
// goes beyond the end of an event: it has no line feed.
func (r *redactor) ready() (pass, look int) {
	near := r.held[:min(len(r.held), blockBytes+holdBytes)]
	if r.stream {
		for ; r.looked < len(near); r.looked++ {
			if endsEvent(near[:r.looked+1]) {
				return r.looked + 1, r.looked + 1
			}
		}
	}
	if len(near) == blockBytes+holdBytes {
		return blockBytes, len(near)
	}
	return 0, 0
}

// endsEvent reports whether a text ends with an empty line behind another.
func endsEvent(text []byte) bool {
	return bytes.HasSuffix(text, []byte("\n\n")) || bytes.HasSuffix(text, []byte("\n\r\n")) || bytes.HasSuffix(text, []byte("\r\r"))
}

// take returns the next bytes without the key, which is looked for in more of them.
func (r *redactor) take(pass, look int) []byte {
	var out []byte
	at := 0
	for _, m := range r.secret.find(r.held[:look]) {
		if m.from >= at && m.from < pass {
			out = append(append(out, r.held[at:m.from]...), redacted...)
			at = m.to
			r.found = true
		}
	}
	if at < pass {
		out, at = append(out, r.held[at:pass]...), pass
	}
	r.held = r.held[at:]
	r.looked = max(0, r.looked-at)
	return out
}
