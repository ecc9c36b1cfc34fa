package format

import (
	"encoding/json"

	"clove.run/clove/models"
)

// Cause is why a request fails. It decides the status, type and code by which a client
// knows what to do.
type Cause string

// The causes.
const (
	Invalid       Cause = "invalid"        // the request is malformed, or has what no right allows
	NotGranted    Cause = "not-granted"    // a right is missing
	TokenRefused  Cause = "token"          // the provider does not accept the token that clove has for it
	BudgetSpent   Cause = "budget"         // nothing is left to spend
	NotFound      Cause = "not-found"      // no such path
	NoUpgrade     Cause = "no-upgrade"     // another protocol than HTTP is asked for
	UnknownModel  Cause = "unknown-model"  // no such model, or none that this agent may use
	TooLarge      Cause = "too-large"      // the body is too large
	ContextLength Cause = "context-length" // the conversation is too long for the model
	RateLimited   Cause = "rate-limited"   // later again
	Overloaded    Cause = "overloaded"     // the provider has no capacity; later again
	Unavailable   Cause = "unavailable"    // the provider cannot be reached or failed; later again
	TimedOut      Cause = "timed-out"      // the provider was too slow; later again
)

// Refusal is why a request is refused or failed. Nothing in it is secret: the agent reads
// all of it.
type Refusal struct {
	Cause   Cause  `json:"cause"`
	Param   string `json:"param,omitempty"` // the field, as messages[2].content
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to do
}

func (r *Refusal) Error() string { return r.text() }

func (r *Refusal) text() string {
	if r.Hint == "" {
		return r.Message
	}
	return r.Message + " (" + r.Hint + ")"
}

// form is how the clients of one family expect a cause.
type form struct {
	status    int
	kind      string // error.type
	code      string // OpenAI's error.code
	retryable bool   // sending it again may help
}

// forms lists both families. The clients of both send again after 408, 409, 429 and from
// 500 on (openai-python and anthropic-sdk-python, _should_retry). So what time does not
// change has another status. A spent budget is Anthropic's 402. OpenAI's own 429
// insufficient_quota would be sent again, and codex sends everything but 400 again:
// therefore 400, as for OpenAI's billing_hard_limit_reached, and for a token that is not accepted. After 426 codex goes on over HTTP
// at once; after any other status it tries WebSockets five times more.
var forms = map[Cause]struct{ openai, anthropic form }{
	Invalid:       {form{400, "invalid_request_error", "invalid_request", false}, form{400, "invalid_request_error", "", false}},
	NotGranted:    {form{403, "permission_error", "permission_denied", false}, form{403, "permission_error", "", false}},
	BudgetSpent:   {form{400, "insufficient_quota", "insufficient_quota", false}, form{402, "billing_error", "", false}},
	TokenRefused:  {form{400, "invalid_request_error", "invalid_api_key", false}, form{401, "authentication_error", "", false}},
	NotFound:      {form{404, "invalid_request_error", "not_found", false}, form{404, "not_found_error", "", false}},
	NoUpgrade:     {form{426, "invalid_request_error", "upgrade_required", false}, form{426, "invalid_request_error", "", false}},
	UnknownModel:  {form{404, "invalid_request_error", "model_not_found", false}, form{404, "not_found_error", "", false}},
	TooLarge:      {form{413, "invalid_request_error", "request_too_large", false}, form{413, "request_too_large", "", false}},
	ContextLength: {form{400, "invalid_request_error", "context_length_exceeded", false}, form{400, "invalid_request_error", "", false}},
	RateLimited:   {form{429, "rate_limit_error", "rate_limit_exceeded", true}, form{429, "rate_limit_error", "", true}},
	Overloaded:    {form{503, "server_error", "server_is_overloaded", true}, form{529, "overloaded_error", "", true}},
	Unavailable:   {form{502, "server_error", "server_error", true}, form{502, "api_error", "", true}},
	TimedOut:      {form{504, "server_error", "timeout", true}, form{504, "timeout_error", "", true}},
}

func formOf(f models.Format, c Cause) form {
	pair, ok := forms[c]
	if !ok {
		pair = forms[Unavailable]
	}
	if f.Family() == models.Anthropic {
		return pair.anthropic
	}
	return pair.openai
}

// Retryable reports whether sending a request again may help. The official clients obey it
// as the header x-should-retry, true or false, before they look at the status.
func (r *Refusal) Retryable() bool { return formOf(models.OpenAIChat, r.Cause).retryable }

type openaiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// Failure returns a refusal in the form that the format's clients expect: the status, and
// the body.
func Failure(f models.Format, r Refusal) (status int, body []byte) {
	return formOf(f, r.Cause).status, errorBody(f, r)
}

// FailureEvent returns a refusal for a stream that has begun: an event that ends it.
func FailureEvent(f models.Format, r Refusal) []byte {
	switch f {
	case models.OpenAIChat:
		return event("", errorBody(f, r))
	case models.OpenAIResponses:
		return responsesEvents(r)
	}
	return event("error", errorBody(f, r))
}

func event(name string, data []byte) []byte {
	var out []byte
	if name != "" {
		out = append(out, "event: "+name+"\n"...)
	}
	out = append(append(out, "data: "...), data...)
	return append(out, "\n\n"...)
}

func errorBody(f models.Format, r Refusal) []byte {
	if f.Family() == models.Anthropic {
		return marshal(anthropicForm(f, r))
	}
	return marshal(map[string]openaiError{"error": openaiForm(f, r)})
}

func anthropicForm(f models.Format, r Refusal) anthropicError {
	e := anthropicError{Type: "error"}
	e.Error.Type, e.Error.Message = formOf(f, r.Cause).kind, r.text()
	if r.Cause == ContextLength {
		// Clients know this error by its text alone.
		e.Error.Message = "prompt is too long: " + e.Error.Message
	}
	return e
}

func openaiForm(f models.Format, r Refusal) openaiError {
	form := formOf(f, r.Cause)
	e := openaiError{Message: r.text(), Type: form.kind, Code: form.code}
	if r.Param != "" {
		e.Param = &r.Param
	}
	return e
}

// responsesEvents returns two events: the official clients end at error, codex knows only
// response.failed.
func responsesEvents(r Refusal) []byte {
	e := openaiForm(models.OpenAIResponses, r)
	type failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	type response struct {
		ID     string   `json:"id"`
		Object string   `json:"object"`
		Status string   `json:"status"`
		Error  failure  `json:"error"`
		Output []string `json:"output"`
	}
	first := marshal(struct {
		Type     string      `json:"type"`
		Sequence int         `json:"sequence_number"`
		Code     string      `json:"code"`
		Message  string      `json:"message"`
		Param    *string     `json:"param"`
		Error    openaiError `json:"error"`
	}{"error", 0, e.Code, e.Message, e.Param, e})
	second := marshal(struct {
		Type     string   `json:"type"`
		Sequence int      `json:"sequence_number"`
		Response response `json:"response"`
	}{"response.failed", 1, response{"resp_refused", "response", "failed", failure{e.Code, e.Message}, []string{}}})
	return append(event("error", first), event("response.failed", second)...)
}

func marshal(v any) []byte {
	raw, _ := json.Marshal(v) // strings and numbers have no error
	return raw
}
