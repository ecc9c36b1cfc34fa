package scripted

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// events writes a stream of server-sent events.
type events struct {
	w       http.ResponseWriter
	hr      *http.Request
	flush   *http.ResponseController
	stopped bool // the client went away
	number  int  // of events with a sequence number
}

func newEvents(w http.ResponseWriter, hr *http.Request) *events {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return &events{w: w, hr: hr, flush: http.NewResponseController(w)}
}

// send writes one event; without a name, only its data. JSON has no line break outside of its
// texts, and escapes those inside, so that no text can end an event.
func (e *events) send(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // a map of texts and numbers
	}
	e.line(name, string(text))
}

// numbered writes an event that has its type and number in its data, as in the Responses API.
func (e *events) numbered(name string, data map[string]any) {
	data["type"], data["sequence_number"] = name, e.number
	e.number++
	e.send(name, data)
}

// line writes an event and flushes it: otherwise it would wait in net/http's buffer for the
// next ones. After a failure nothing more is written.
func (e *events) line(name, data string) {
	if e.stopped {
		return
	}
	text := "data: " + data + "\n\n"
	if name != "" {
		text = "event: " + name + "\n" + text
	}
	_, err := io.WriteString(e.w, text)
	if err == nil {
		err = e.flush.Flush()
	}
	e.stopped = err != nil
}

// pieces calls send with each piece of the text of an answer, again and again if it is
// endless.
func (e *events) pieces(a *reply, send func(piece string)) {
	chunks := a.turn.chunks(a.text)
	for again := true; again; again = a.turn.Endless {
		for _, piece := range chunks {
			if e.stopped = e.stopped || !wait(e.hr, time.Duration(a.turn.Pace)); e.stopped {
				return
			}
			send(piece)
		}
	}
}
