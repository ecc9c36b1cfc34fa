package format

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"clove.run/clove/models"
)

// Body returns the body to send to a provider: with the provider's name of the model; with
// out as the maximum of output where the request has none or a larger one, unless out is 0; with
// include_usage in a chat stream; and with store false in a request of OpenAI's responses
// that does not say it, unless Granted has provider-state. All else is as the agent wrote
// it, numbers too. The error is not nil if the request was not made by Parse.
func (r *Request) Body(model string, out int64) ([]byte, error) {
	if r.document == nil {
		return nil, &Refusal{Cause: Invalid, Message: "the request has no body"}
	}
	w := &writer{}
	w.WriteByte('{')
	for i := range r.document.children(0) {
		r.copy(w, i, model, out)
	}
	if field := r.missingLimit(); field != "" && out > 0 {
		w.member(quote(field), strconv.AppendInt(nil, out, 10))
	}
	if r.Format == models.OpenAIChat && r.Stream && !w.options {
		w.member(quote("stream_options"), []byte(`{"include_usage":true}`))
	}
	if r.forgets() {
		w.member(quote("store"), []byte("false"))
	}
	w.WriteByte('}')
	return w.Bytes(), nil
}

// copy writes one field of the agent's. Those that are null and written by clove are left
// out, as they would occur twice.
func (r *Request) copy(w *writer, i int32, model string, out int64) {
	d := r.document
	name, empty := d.name(i), d.nodes[i].kind == null
	switch {
	case name == "model":
		w.member(quote(name), quote(model))
	case name == r.limit && !empty && out > 0 && out < r.Out:
		w.member(d.rawName(i), strconv.AppendInt(nil, out, 10))
	case name == "stream_options" && r.Format == models.OpenAIChat && r.Stream:
		w.options = true
		w.member(quote(name), r.streamOptions(i))
	case empty && (slices.Contains(r.limits(), name) || name == "store" && r.forgets()):
	default:
		w.member(d.rawName(i), d.raw(i))
	}
}

func (r *Request) missingLimit() string {
	if limits := r.limits(); r.limit == "" && len(limits) > 0 {
		return limits[0]
	}
	return ""
}

// forgets reports whether store is to be written as false.
func (r *Request) forgets() bool {
	if r.Format != models.OpenAIResponses || slices.Contains(r.Granted, models.ProviderState) {
		return false
	}
	i, ok := r.document.member(0, "store")
	return !ok || r.document.nodes[i].kind == null
}

func (r *Request) streamOptions(i int32) []byte {
	w := &writer{}
	w.WriteByte('{')
	for child := range r.document.children(i) {
		if name := r.document.name(child); name != "include_usage" {
			w.member(r.document.rawName(child), r.document.raw(child))
		}
	}
	w.member(quote("include_usage"), []byte("true"))
	w.WriteByte('}')
	return w.Bytes()
}

// writer writes the members of an object.
type writer struct {
	bytes.Buffer
	options bool // stream_options was written
}

func (w *writer) member(name, raw []byte) {
	if last := w.Bytes()[w.Len()-1]; last != '{' {
		w.WriteByte(',')
	}
	w.Write(name)
	w.WriteByte(':')
	w.Write(raw)
}

func quote(s string) []byte {
	raw, _ := json.Marshal(s) // a string has no error
	return raw
}
