package people

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/tools"
)

// Options are what a Server is made of.
type Options struct {
	Cloved Cloved
	// Spec is that of a new sandbox. Its command does nothing, and does not end.
	Spec func() (agent.Spec, error)
	// Agents lists the agents that can be started, and Agent is the spec of one with a prompt.
	Agents func() []Agent
	Agent  func(name, prompt string) (agent.Spec, error)
	// Show writes changes for people: each with its contents as a patch, where it has them.
	Show func([]agent.Change) string
	// Ending says why a run ended, and what to change; nothing of one that ended by itself.
	Ending func(agent.Record, agent.Limits) []string
	// Report writes a line for the user who started the server.
	Report func(line string)
	// Handles has each sandbox used by the handle that the call which makes it returns; false: there is one, for
	// the one program.
	Handles bool
}

// Agent is one that can be started.
type Agent struct{ Name, Description string }

// Server answers the calls of one program. Its methods may be called at once. Close must be called.
type Server struct {
	Options

	mu        sync.Mutex          // guards the following
	sandboxes map[string]*sandbox // by handle
	agents    []*started
}

// New makes a server. It starts nothing.
func New(o Options) *Server {
	return &Server{Options: o, sandboxes: map[string]*sandbox{}}
}

// Handle answers one call. It is a channel.Handler.
func (s *Server) Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "tool.list":
		return json.Marshal(api.ToolListResult{Tools: s.list()})
	case "tool.call":
		var p api.ToolCallParams
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, api.Failure(api.CodeParams, "", "the parameters of tool.call cannot be read: %s", err)
		}
		return s.call(ctx, p)
	}
	return nil, api.Failure(api.CodeMethod, "", "there is no method %.64q", method)
}

// answer is what a tool gives.
type answer struct {
	text   string
	left   int64  // bytes that text does not have
	failed string // why it failed, with the text as far as there is one; empty: it did not
}

// call calls a tool. That the tool fails is a result.
func (s *Server) call(ctx context.Context, p api.ToolCallParams) (json.RawMessage, error) {
	t := find(p.Tool)
	if t == nil {
		return nil, api.Failure(api.CodeNotFound, "tool.list has those that there are", "there is no tool %.64q", p.Tool)
	}
	if p.TimeoutMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(p.TimeoutMS)*time.Millisecond)
		defer cancel()
	}
	began := time.Now()
	a, err := t.do(ctx, s, p.Arguments)
	if err != nil {
		a.failed = reason(err)
	}
	return fitted(api.ToolCallResult{Call: rand.Text()[:16], Failed: a.failed != "", Text: strings.ToValidUTF8(a.text, "\uFFFD"),
		Error: shortened(a.failed, tools.MaxError), Left: a.left, DurationMS: time.Since(began).Milliseconds()})
}

// reason is an error for a model: the message, and what to change.
func reason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the time of the call was over"
	case errors.Is(err, context.Canceled):
		return "the call was cancelled"
	}
	f := agent.FailureOf(err)
	if f.Hint != "" {
		return f.Message + " (" + f.Hint + ")"
	}
	return f.Message
}

// maxEncoded bounds a result as JSON: a packet has it with its envelope.
const maxEncoded = 80 << 10

// fitted encodes a result, and takes from the middle of its text what does not fit: text of control
// characters has six times its size as JSON.
func fitted(r api.ToolCallResult) (json.RawMessage, error) {
	for {
		text, err := json.Marshal(r)
		if err != nil || len(text) <= maxEncoded || r.Text == "" {
			return text, err
		}
		short, left := cut(r.Text, len(r.Text)*maxEncoded/len(text)*9/10)
		r.Text, r.Left = short, r.Left+left
	}
}

// typed makes a tool's function of one that has its arguments as a value.
func typed[A any](do func(*Server, context.Context, A) (answer, error)) function {
	return function{do: func(ctx context.Context, s *Server, text json.RawMessage) (answer, error) {
		var a A
		if len(text) == 0 {
			text = json.RawMessage("{}")
		}
		if len(text) > tools.MaxArguments {
			return answer{}, wrong("give less at once", "the arguments have more than %d bytes", tools.MaxArguments)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			return answer{}, wrong("see the tool's schema", "the arguments do not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
		}
		return do(s, ctx, a)
	}}
}

// Close ends all that the server started. Changes of the workspace that were not applied stay with
// their run, and a line says so.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	agents, sandboxes := s.agents, s.sandboxes
	s.agents, s.sandboxes = nil, nil
	s.mu.Unlock()
	var err error
	for _, b := range sandboxes {
		err = errors.Join(err, b.close(ctx))
	}
	for _, a := range agents {
		err = errors.Join(err, s.settle(ctx, a.held))
	}
	return err
}
