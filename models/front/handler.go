package front

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/bounded"
	"clove.run/clove/models"
	"clove.run/clove/models/format"
	"clove.run/clove/models/link"
)

// handler serves one run.
type handler struct {
	server *Server
	run    agent.ID
	calls  chan struct{} // places
	bodies *bounded.Bytes
}

// routes are the paths behind the base URL, with or without /v1: clients differ in which
// of the two they take for the base.
var routes = map[string]models.Format{
	"/chat/completions":      models.OpenAIChat,
	"/responses":             models.OpenAIResponses,
	"/messages":              models.AnthropicMessages,
	"/messages/count_tokens": models.AnthropicCount,
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	f, known := routes[path]
	switch {
	case known && r.Method == http.MethodPost:
		h.call(w, r, f)
	case known && r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		w.Header().Set("Upgrade", "HTTP/1.1")
		fail(w, f, format.Refusal{Cause: format.NoUpgrade, Message: "there are no WebSockets here", Hint: "send it with POST"}, 0)
	case r.Method == http.MethodHead && r.URL.Path == "/": // Claude Code asks whether somebody is there
	case path == "/models" && r.Method == http.MethodGet:
		h.list(w, r, "")
	case strings.HasPrefix(path, "/models/") && r.Method == http.MethodGet:
		h.list(w, r, strings.TrimPrefix(path, "/models/"))
	default:
		fail(w, formatOf(r), format.Refusal{Cause: format.NotFound, Message: r.Method + " " + strconv.QuoteToASCII(r.URL.Path) + " is not served here",
			Hint: "docs/models.md lists what is"}, 0)
	}
}

// formatOf is the form in which a client of unknown intent wants its errors.
func formatOf(r *http.Request) models.Format {
	if r.Header.Get("Anthropic-Version") != "" {
		return models.AnthropicMessages
	}
	return models.OpenAIChat
}

// fail answers with a client's own form of an error.
// after is when a repetition may succeed, in seconds; 0: unknown.
func fail(w http.ResponseWriter, f models.Format, e format.Refusal, after int) {
	status, body := format.Failure(f, e)
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	w.Header().Set("X-Should-Retry", strconv.FormatBool(e.Retryable()))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // a client that is gone does not miss it
}

// list answers with the models that the run may call, or with the one that is named.
func (h *handler) list(w http.ResponseWriter, r *http.Request, name string) {
	a, q, err := h.server.ask(r.Context(), func(n uint64) link.FromFront {
		return link.FromFront{List: &link.List{Number: n, Run: h.run, Model: name}}
	})
	if err != nil {
		return
	}
	defer q.end()
	f := formatOf(r)
	if a.message.Names == nil {
		refuse(w, f, a.message.Refuse)
		return
	}
	names := a.message.Names.Names
	body := format.Models(f.Family(), names, nil, time.Now())
	if name != "" {
		if !slices.Contains(names, name) {
			refuse(w, f, &link.Refuse{Reason: link.ReasonUnknown, Message: "there is no model " + strconv.QuoteToASCII(name)})
			return
		}
		body = onlyOf(format.Models(f.Family(), []string{name}, a.message.Names.Formats, time.Now()))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}

// onlyOf is the only element of a list of models.
func onlyOf(list []byte) []byte {
	var l struct {
		Data []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(list, &l) != nil || len(l.Data) != 1 {
		return nil
	}
	return l.Data[0]
}

// call serves one call of a model.
func (h *handler) call(w http.ResponseWriter, r *http.Request, f models.Format) {
	select {
	case h.calls <- struct{}{}:
		defer func() { <-h.calls }()
	default:
		refuse(w, f, &link.Refuse{Reason: link.ReasonBusy, Message: "too many calls are in flight", After: 1})
		return
	}
	body, release, refusal := h.read(w, r)
	if refusal != nil {
		fail(w, f, *refusal, 0)
		return
	}
	defer release()
	request, err := format.Parse(f, body)
	if err != nil {
		fail(w, f, refused(err), 0)
		return
	}
	h.forward(w, r, request)
}

// read reads a request's body. release gives back the room that it takes.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), refusal *format.Refusal) {
	if r.ContentLength > link.MaxBody {
		return nil, nil, tooLarge()
	}
	size := r.ContentLength
	if size < 0 {
		size = link.MaxBody // chunked: as much as it may become
	}
	full := &format.Refusal{Cause: format.Overloaded, Message: "too many large requests are in flight"}
	if !h.bodies.Take(size) {
		return nil, nil, full
	}
	if !h.server.bodies.Take(size) {
		h.bodies.Give(size)
		return nil, nil, full
	}
	release = func() { h.server.bodies.Give(size); h.bodies.Give(size) }
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, link.MaxBody))
	if err == nil {
		return body, release, nil
	}
	release()
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, nil, tooLarge()
	}
	return nil, nil, &format.Refusal{Cause: format.Invalid, Message: "the request broke off"}
}

func tooLarge() *format.Refusal {
	return &format.Refusal{Cause: format.TooLarge, Message: "the request has more than " + strconv.Itoa(link.MaxBody) + " bytes"}
}

// refused is what Parse refused a request for.
func refused(err error) format.Refusal {
	if r := (*format.Refusal)(nil); errors.As(err, &r) {
		return *r
	}
	return format.Refusal{Cause: format.Invalid, Message: err.Error()}
}
