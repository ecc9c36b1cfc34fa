package scripted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"clove.run/clove/models"
)

// reply is what a turn gives to one request.
type reply struct {
	turn  *Turn
	r     *request
	id    string // the same for the same place in a conversation
	text  string
	calls []usedTool
	cut   bool // it has as many tokens as the request allows
	used  models.Usage
}

// usedTool is one use of a tool.
type usedTool struct{ id, name, arguments string }

// bytesPerToken is the usual length of an English token.
const bytesPerToken = 4

func countTokens(bytes int64) int64 { return (bytes + bytesPerToken - 1) / bytesPerToken }

// reply makes the answer of t to a request. A text that is cut has no calls after it.
func (t *Turn) answer(r *request) *reply {
	a := &reply{turn: t, r: r, id: fmt.Sprintf("scripted_%d", r.turn), text: strings.Repeat(t.Text, max(t.Repeat, 1))}
	if t.Echo {
		a.text = r.last
	}
	for i, c := range t.ToolCalls {
		a.calls = append(a.calls, usedTool{id: fmt.Sprintf("call_%d_%d", r.turn, i+1), name: c.Name, arguments: c.line()})
	}
	if most := r.most; most > 0 && !t.Endless && countTokens(int64(len(a.text))) > most {
		a.text, a.calls, a.cut = upTo(a.text, most*bytesPerToken), nil, true
	}
	a.used = a.count()
	return a
}

// line returns the arguments as a model writes them.
func (c ToolCall) line() string {
	var text string
	var line bytes.Buffer
	switch {
	case len(c.Arguments) == 0:
		return "{}"
	case json.Unmarshal(c.Arguments, &text) == nil:
		return text
	case json.Compact(&line, c.Arguments) != nil:
		return string(c.Arguments)
	}
	return line.String()
}

// count returns the usage that is reported.
func (a *reply) count() models.Usage {
	if lie := cmp.Or(a.turn.Lie, a.turn.Usage); lie != nil {
		return *lie
	}
	out := int64(len(a.text))
	for _, c := range a.calls {
		out += int64(len(c.name) + len(c.arguments))
	}
	return models.Usage{In: countTokens(a.r.bytes), Out: countTokens(out) * int64(a.r.n)}
}

// chunks returns the pieces of a text as a stream sends them, whole characters only.
func (t *Turn) chunks(text string) []string {
	size := cmp.Or(t.Chunk, 16)
	var all []string
	for text != "" {
		piece := upTo(text, int64(size))
		if piece == "" { // the first character is longer
			_, n := utf8.DecodeRuneInString(text)
			piece = text[:n]
		}
		all, text = append(all, piece), text[len(piece):]
	}
	return all
}

// upTo returns the longest beginning of whole characters that has at most n bytes.
func upTo(text string, n int64) string {
	if int64(len(text)) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
