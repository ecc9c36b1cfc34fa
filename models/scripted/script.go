package scripted

import (
	"encoding/json"
	"fmt"
	"net/textproto"
	"regexp"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
)

// Script is what a provider answers. ParseScript makes one. It does not change.
type Script struct {
	Turns []Turn `json:"turns"`
}

// Turn is one answer, and when it is given.
type Turn struct {
	Match  string `json:"match"`  // contained in the last input; empty: any
	Regexp string `json:"regexp"` // fits the last input; empty: any
	Number int    `json:"turn"`   // of the answer in its conversation, from 1; 0: any
	Model  string `json:"model"`  // a glob; empty: any

	Text      string            `json:"text"`
	Echo      bool              `json:"echo"`   // the last input instead of Text
	Repeat    int               `json:"repeat"` // how often Text is written; 0: once
	ToolCalls []ToolCall        `json:"tool_calls"`
	Error     *Error            `json:"error"`
	Headers   map[string]string `json:"headers"`

	Delay   config.Duration `json:"delay"` // before the head of the answer
	Pace    config.Duration `json:"pace"`  // before each event with text
	Chunk   int             `json:"chunk"` // bytes of text in an event; 0: 16
	Endless bool            `json:"endless"`

	Usage *models.Usage `json:"usage"` // nil: counted
	Lie   *models.Usage `json:"lie"`   // reported instead; may be negative

	expression *regexp.Regexp
	scope      grant.Scope
}

// ToolCall is a call that the model asks for.
type ToolCall struct {
	Name string `json:"name"`
	// Arguments are sent as one line of JSON. A string is sent as it is, also where it is
	// no JSON.
	Arguments json.RawMessage `json:"arguments"`
}

// Error is an answer other than 200.
type Error struct {
	Status  int    `json:"status"`
	Type    string `json:"type"` // as the provider's format names it
	Message string `json:"message"`
}

// Bounds of a script.
const (
	maxTurns = 10_000
	maxText  = 64 << 20 // bytes of one answer; endless has none
)

// Echo is the script of the provider echo.
func Echo() *Script { return &Script{Turns: []Turn{{Echo: true}}} }

// ParseScript reads a script. Errors are of KindInvalid and have a hint.
func ParseScript(text []byte) (*Script, error) {
	s := new(Script)
	if len(text) > 0 {
		if err := document.Decode(text, s); err != nil {
			return nil, err
		}
	}
	if len(s.Turns) == 0 || len(s.Turns) > maxTurns {
		return nil, invalid("turns", "write turns: [{text: hello}]", "a script has 1 to %d turns", maxTurns)
	}
	for i := range s.Turns {
		if err := s.Turns[i].check(fmt.Sprintf("turns.%d", i)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// check refuses what a turn could not do, and compiles its conditions.
func (t *Turn) check(at string) error {
	for _, err := range []error{t.checkCondition(at), t.checkAnswer(at), t.checkCalls(at), t.checkRest(at)} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) checkCondition(at string) (err error) {
	if t.Regexp != "" {
		if t.expression, err = regexp.Compile(t.Regexp); err != nil {
			return invalid(at+".regexp", "the syntax is RE2: https://golang.org/s/re2syntax", "%v", err)
		}
	}
	if t.Model != "" {
		if t.scope, err = grant.NewScope("model", t.Model, grant.NoRights); err != nil {
			return invalid(at+".model", "write a name, or gpt-*", "%.64q is not the name of a model", t.Model)
		}
	}
	if t.Number < 0 {
		return invalid(at+".turn", "the first answer of a conversation is 1", "%d is less than 1", t.Number)
	}
	return nil
}

func (t *Turn) checkAnswer(at string) error {
	says := t.Text != "" || t.Echo || len(t.ToolCalls) > 0
	switch {
	case t.Error != nil && (says || t.Endless):
		return invalid(at, "make two turns of it", "an error has no other answer beside it")
	case t.Error == nil && !says:
		return invalid(at, "write text, echo: true, tool_calls or error", "the turn answers nothing")
	case t.Echo && t.Text != "":
		return invalid(at, "remove text or echo", "echo replaces the text")
	case t.Endless && (t.Echo || t.Text == "" || len(t.ToolCalls) > 0):
		return invalid(at+".endless", "write text beside it, and nothing else", "only a text is endless")
	case t.Error != nil && (t.Error.Status < 400 || t.Error.Status > 599):
		return invalid(at+".error.status", "write a status from 400 to 599, for example 429", "%d is not the status of an error", t.Error.Status)
	}
	return nil
}

func (t *Turn) checkCalls(at string) error {
	for i, call := range t.ToolCalls {
		if call.Name == "" {
			return invalid(fmt.Sprintf("%s.tool_calls.%d", at, i), "write {name: NAME, arguments: {…}}", "a tool call needs a name")
		}
	}
	return nil
}

func (t *Turn) checkRest(at string) error {
	switch {
	case t.Repeat < 0 || t.Repeat > maxText || len(t.Text)*max(t.Repeat, 1) > maxText:
		return invalid(at+".repeat", "use endless for more", "the answer would be less than nothing, or more than %d bytes", maxText)
	case t.Chunk < 0:
		return invalid(at+".chunk", "leave it out", "%d is less than 0", t.Chunk)
	}
	if u := t.Usage; u != nil && min(u.In, u.Cached, u.CacheWrite-u.CacheWriteLong, u.CacheWriteLong, u.Out, u.Reasoning) < 0 {
		return invalid(at+".usage", "use lie for what no provider would report", "a number is less than 0")
	}
	for name, value := range t.Headers {
		if textproto.TrimString(name) != name || name == "" || strings.ContainsAny(name+value, "\r\n\x00") {
			return invalid(at+".headers", "write {name: value}", "%.64q is not a header", name)
		}
	}
	return nil
}

// answers reports whether the conditions of t hold.
func (t *Turn) answers(r *request) bool {
	return strings.Contains(r.last, t.Match) && (t.expression == nil || t.expression.MatchString(r.last)) &&
		(t.Number == 0 || t.Number == r.turn) && (t.Model == "" || t.asked(r.model))
}

// asked reports whether the glob covers the model of a request.
func (t *Turn) asked(model string) bool {
	scope, err := grant.NewScope("model", model, grant.NoRights)
	return err == nil && t.scope.Covers(scope)
}

// turn returns the turn that answers; nil if none does.
func (s *Script) turn(r *request) *Turn {
	for i := range s.Turns {
		if s.Turns[i].answers(r) {
			return &s.Turns[i]
		}
	}
	return nil
}

func invalid(at, hint, format string, arguments ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: at + ": " + fmt.Sprintf(format, arguments...), Hint: hint}
}
