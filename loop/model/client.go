package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of what a model sends.
const (
	MaxAnswer = 1 << 20 // bytes of text, names and arguments in one answer
	maxLine   = 2 << 20 // bytes of one event
	maxStream = 1 << 28 // bytes of all events, each of which may have one byte of text
	maxCalls  = 64      // tool calls in one answer
	maxError  = 64 << 10
	// silence is how long a stream may send nothing. A call also waits for its turn at clove.
	silence = 15 * time.Minute
	// attempts of one call, with a pause that doubles.
	attempts = 5
)

// Client calls one model. It is for one goroutine.
type Client struct {
	URL   string // the base, as in OPENAI_BASE_URL
	Key   string
	Model string
	Tools []Tool
	Pause time.Duration // before the first repetition; 0: a second

	HTTP *http.Client // nil: one without a proxy

	format format // nil: not known yet
}

// Failure is a call that gave no answer.
type Failure struct {
	Status  int // of HTTP; 0: there was none
	Message string
	Spent   bool // a budget, clove's or the provider's, has no room for the call

	again bool          // a repetition may help
	after time.Duration // as the server asks
}

func (f *Failure) Error() string { return f.Message }

// Ask sends the conversation and reads the answer. text, if not nil, gets the text as it comes.
// choice is "none", so that no tool is called, or empty. An interrupted answer comes with the error.
func (c *Client) Ask(ctx context.Context, messages []Message, choice string, text func(string)) (Answer, error) {
	pause := c.Pause
	if pause == 0 {
		pause = time.Second
	}
	for attempt := 1; ; attempt++ {
		shown := false
		answer, err := c.once(ctx, messages, choice, func(piece string) {
			shown = true
			if text != nil {
				text(piece)
			}
		})
		var f *Failure
		// What a reader has seen is not shown twice.
		if err == nil || ctx.Err() != nil || !errors.As(err, &f) || !f.again || attempt == attempts || shown && text != nil {
			return answer, err
		}
		select {
		case <-time.After(max(pause, f.after)):
		case <-ctx.Done():
			return answer, ctx.Err()
		}
		pause *= 2
	}
}

// once is one attempt.
func (c *Client) once(ctx context.Context, messages []Message, choice string, text func(string)) (Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("the model sent nothing for %s", silence)) })
	defer watch.Stop()
	if err := c.learn(ctx); err != nil {
		return Answer{}, err
	}
	body, err := c.format.body(c, messages, choice)
	if err != nil {
		return Answer{}, err
	}
	response, err := c.send(ctx, http.MethodPost, c.format.path(), body, c.format)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Answer{}, refusal(response)
	}
	s := stream{text: text}
	err = s.read(response.Body, c.format, func() { watch.Reset(silence) })
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = &Failure{Message: cause.Error()}
	}
	return s.answer(), err
}

// send makes a request. The error is a Failure.
func (c *Client) send(ctx context.Context, method, path string, body []byte, f format) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, &Failure{Message: err.Error()}
	}
	request.Header.Set("Content-Type", "application/json")
	f.authorize(request.Header, c.Key)
	response, err := c.client().Do(request)
	if err != nil {
		return nil, &Failure{Message: "cannot call the model: " + err.Error(), again: true}
	}
	return response, nil
}

func (c *Client) client() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// codeSpent is the code that OpenAI, and clove in its place, gives a call that does not fit in a
// budget.
const codeSpent = "insufficient_quota"

// apiError is an error as both formats have it.
type apiError struct {
	Type    string `json:"type"`
	Code    any    `json:"code"` // of OpenAI's; others have numbers
	Message string `json:"message"`
}

// spent reports whether a budget has no room; Anthropic has a type for it.
func (e apiError) spent() bool { return e.Code == codeSpent || e.Type == "billing_error" }

// failure is an error in an answer that had begun.
func (e apiError) failure() *Failure {
	return &Failure{Message: fmt.Sprintf("the model's answer ended with an error: %.2000s", e.Message), Spent: e.spent(), again: !e.spent()}
}

// maxAfter bounds the wait that a server may ask for.
const maxAfter = time.Minute

// refusal reads the error that a server answers with.
func refusal(response *http.Response) *Failure {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxError)) // what came of it
	f := &Failure{Status: response.StatusCode, Message: strings.TrimSpace(string(text))}
	var body struct {
		Error apiError `json:"error"`
	}
	if json.Unmarshal(text, &body) == nil && body.Error.Message != "" {
		f.Message = body.Error.Message
	}
	f.Message = fmt.Sprintf("the model's server answered %d: %.2000s", f.Status, strings.ToValidUTF8(f.Message, "?"))
	f.Spent = f.Status == http.StatusPaymentRequired || body.Error.spent()
	f.again = !f.Spent && (f.Status == http.StatusTooManyRequests || f.Status >= 500) && response.Header.Get("x-should-retry") != "false"
	if seconds, err := strconv.Atoi(response.Header.Get("retry-after")); err == nil && seconds > 0 {
		f.after = min(time.Duration(seconds)*time.Second, maxAfter)
	}
	return f
}
