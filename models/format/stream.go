package format

import (
	"bytes"
	"encoding/json"

	"clove.run/clove/models"
)

// MaxEvent is how much of one event a StreamFilter keeps, in bytes. A longer event passes.
const MaxEvent = 1 << 20

// StreamFilter passes a stream on, each event when it is whole, so that an error can follow
// at any time. Out of a chat stream whose client did not ask for the usage it takes the
// event with the usage: Body has asked for it in the client's name. All other bytes pass
// unchanged.
type StreamFilter struct {
	off   bool   // no stream: everything passes at once
	usage bool   // the usage passes
	event []byte // the event so far
	line  int    // bytes of its last line
	cr    bool   // the last byte was a carriage return
	open  bool   // the event was too long and passes
	drops bool   // the event before was dropped
}

// NewStreamFilter returns the filter for the answer to a request.
func NewStreamFilter(r *Request) *StreamFilter {
	return &StreamFilter{off: !r.Stream, usage: r.Format != models.OpenAIChat || r.Usage}
}

// Filter takes the next bytes of the provider's stream and returns those to pass on.
func (f *StreamFilter) Filter(p []byte) []byte {
	if f.off {
		return p
	}
	var out []byte
	for len(p) > 0 {
		if n := lineEnd(p); n > 0 {
			f.event = append(f.event, p[:n]...)
			f.line, f.cr, p = f.line+n, false, p[n:]
		} else {
			out = f.end(out, p[0])
			p = p[1:]
		}
		if len(f.event) > MaxEvent {
			f.open = true
			out, f.event = append(out, f.event...), f.event[:0]
		}
	}
	return out
}

func lineEnd(p []byte) int {
	for i, b := range p {
		if b == '\n' || b == '\r' {
			return i
		}
	}
	return len(p)
}

// end takes a byte that ends a line. An empty line ends the event.
func (f *StreamFilter) end(out []byte, b byte) []byte {
	tail := b == '\n' && f.cr // belongs to the carriage return before it
	f.cr = b == '\r'
	if tail && len(f.event) == 0 && !f.open {
		if f.drops {
			return out
		}
		return append(out, b)
	}
	f.event = append(f.event, b)
	if tail {
		return out
	}
	if f.line > 0 {
		f.line = 0
		return out
	}
	f.drops = !f.usage && !f.open && onlyUsage(f.event)
	if !f.drops {
		out = append(out, f.event...)
	}
	f.event, f.open = f.event[:0], false
	return out
}

// Rest returns what is left at the end of a stream: an event without its empty line.
func (f *StreamFilter) Rest() []byte {
	rest := f.event
	f.event = nil
	return rest
}

// onlyUsage reports whether an event has the usage and no choice.
func onlyUsage(event []byte) bool {
	if !bytes.Contains(event, []byte(`"usage"`)) {
		return false
	}
	var chunk struct {
		Choices []json.RawMessage `json:"choices"`
		Usage   json.RawMessage   `json:"usage"`
	}
	if json.Unmarshal(data(event), &chunk) != nil {
		return false
	}
	return chunk.Choices != nil && len(chunk.Choices) == 0 && bytes.HasPrefix(chunk.Usage, []byte("{"))
}

// data joins the data lines of an event.
func data(event []byte) []byte {
	var out []byte
	for _, line := range bytes.FieldsFunc(event, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			out = append(append(out, bytes.TrimPrefix(rest, []byte(" "))...), '\n')
		}
	}
	return out
}
