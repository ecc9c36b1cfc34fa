package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxBody bounds a request: more than any provider takes.
const maxBody = 64 << 20

// format is one format of requests and answers.
type format struct {
	read    func(body []byte) (*request, error)
	whole   func(*reply) any               // the body of an answer without a stream
	stream  func(*reply, *events)          // the events of one with
	failure func(kind, message string) any // the body of an error
}

// formats are the paths that the provider serves.
var formats = map[string]format{
	"POST /v1/chat/completions":      {readChat, wholeChat, streamChat, openaiFailure},
	"POST /v1/responses":             {readResponses, wholeResponse, streamResponse, openaiFailure},
	"POST /v1/messages":              {readMessages, wholeMessage, streamMessage, anthropicFailure},
	"POST /v1/messages/count_tokens": {readMessages, nil, nil, anthropicFailure},
}

// New returns a provider that answers from s.
func New(s *Script) http.Handler {
	mux := http.NewServeMux()
	for path, f := range formats {
		mux.HandleFunc(path, func(w http.ResponseWriter, hr *http.Request) { f.serve(s, w, hr) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, hr *http.Request) {
		write(w, http.StatusNotFound, openaiFailure("not_found_error", hr.Method+" "+hr.URL.Path+" is not served here"))
	})
	return mux
}

func (f format) serve(s *Script, w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxBody))
	if err != nil {
		write(w, http.StatusRequestEntityTooLarge, f.failure("request_too_large", fmt.Sprintf("the request is longer than %d bytes, or broken", maxBody)))
		return
	}
	r, err := f.read(body)
	if err != nil {
		write(w, http.StatusBadRequest, f.failure("invalid_request_error", err.Error()))
		return
	}
	if f.whole == nil {
		write(w, http.StatusOK, map[string]any{"input_tokens": countTokens(r.bytes)})
		return
	}
	t := s.turn(r)
	if t == nil {
		write(w, http.StatusBadRequest, f.failure("invalid_request_error", fmt.Sprintf("no turn of the script answers turn %d of model %.64q", r.turn, r.model)))
		return
	}
	f.answer(t, r, w, hr)
}

// reply writes what a turn says.
func (f format) answer(t *Turn, r *request, w http.ResponseWriter, hr *http.Request) {
	if !wait(hr, time.Duration(t.Delay)) {
		return
	}
	for name, value := range t.Headers {
		w.Header().Set(name, value)
	}
	a := t.answer(r)
	// An error is an answer without a stream, also for a client that asked for one: the
	// providers refuse before they begin to stream.
	switch {
	case t.Error != nil:
		write(w, t.Error.Status, f.failure(t.Error.Type, t.Error.Message))
	case r.stream:
		f.stream(a, newEvents(w, hr))
	case t.Endless:
		writeEndless(w, hr, a)
	default:
		write(w, http.StatusOK, f.whole(a))
	}
}

// wait returns false if the client went away in the meantime.
func wait(hr *http.Request, d time.Duration) bool {
	if d <= 0 {
		return hr.Context().Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-hr.Context().Done():
		return false
	}
}

func write(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // a map of texts and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may have gone
}

// writeEndless writes a JSON string that does not end.
func writeEndless(w http.ResponseWriter, hr *http.Request, a *reply) {
	w.Header().Set("Content-Type", "application/json")
	text, err := json.Marshal(a.text)
	if err != nil {
		panic(err) // a text
	}
	_, err = io.WriteString(w, `{"text":"`)
	for err == nil && wait(hr, time.Duration(a.turn.Pace)) {
		_, err = w.Write(text[1 : len(text)-1])
	}
}

// openaiFailure is an error of OpenAI's.
func openaiFailure(kind, message string) any {
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": kind}}
}

// anthropicFailure is an error of Anthropic's.
func anthropicFailure(kind, message string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
}
