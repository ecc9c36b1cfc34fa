package control

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/packet"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
	"clove.run/clove/models/route"
)

const (
	// testTime bounds a test: a model may think before its first token.
	testTime = 2 * time.Minute
	testIn   = 16 // tokens: more than testWords are
	testOut  = 64
	// maxSaid bounds what is shown of an answer that is an error, in bytes.
	maxSaid = 512
)

// Test makes one small call of a model for an administrator: over clove-upstream, with the
// provider's key and within its limits, as for an agent, but from no budget. A call that fails
// is a result; the error says that none could be made.
func (c *Control) Test(ctx context.Context, name string) (result api.ModelTestResult, err error) {
	targets, err := c.desk.Config().Resolve(name, 0, nil)
	if err != nil {
		return result, api.Failure(api.CodeNotFound, "clove models list shows the models", "%s", err)
	}
	w := &demand{begin: link.Begin{Stream: true, In: testIn, Out: testOut, N: 1}}
	w.target = targets[c.desk.health.choose(route.Caller{}, targets)]
	w.begin.Format = testFormats[slices.IndexFunc(testFormats, w.target.Provider.Speaks)]
	limited, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	done, said, err := c.try(limited, w)
	switch {
	case err == nil:
		c.desk.health.report(route.Caller{}, w.target, done, false)
		c.desk.limits.learned(w.target, done.Limits)
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		done.Fault, err = link.FaultTime, nil
	case errors.Is(err, errCrowded):
		err = api.Failure(api.CodeBusy, "", "%s", err)
	}
	return resultOf(w, done, said), err
}

// try makes the call. said is what the provider says in an answer that is an error.
func (c *Control) try(ctx context.Context, w *demand) (done link.Done, said string, err error) {
	var p places
	defer p.end()
	if err := c.desk.limits.admit(ctx, &p, applicant{target: w.target, tokens: testIn + testOut}); err != nil {
		return done, "", errors.Unwrap(err)
	}
	u, err := c.desk.upstreams.get()
	if err != nil {
		return done, "", err
	}
	if err := c.desk.upstreams.keys.use(agent.Run{}, w.target.Provider, w.begin.Format); err != nil {
		return done, "", err
	}
	near, far, err := stream()
	if err != nil {
		return done, "", err
	}
	defer packet.CloseAll([]*os.File{near, far})
	number, ended := u.all.number(), make(tested, 1)
	u.enter(number, ended) // clove-upstream stays until it leaves
	defer u.leave(number)
	err = u.Conn.Send(link.ToUpstream{Call: &link.Call{Number: number, Provider: w.target.Provider.Name, Format: w.begin.Format,
		In: testIn, MostOut: 2*testOut + 1000}}, far)
	if err != nil {
		return done, "", err
	}
	far.Close() // the stream ends with clove-upstream's side
	defer context.AfterFunc(ctx, func() { near.Close() })()
	said = converse(near, testBody(w.begin.Format, w.target.Model))
	select {
	case done = <-ended:
		return done, said, nil
	case <-ctx.Done():
		return done, "", ctx.Err()
	case <-u.Gone():
	}
	select {
	case done = <-ended: // it was the last that it said
		return done, said, nil
	default:
		return done, "", errors.New("clove-upstream has ended: " + u.Reason())
	}
}

// tested is a call that no run pays for. It gets the first report of its end.
type tested chan link.Done

func (t tested) done(d link.Done) {
	select {
	case t <- d:
	default: // it ended before
	}
}

func (t tested) more() int64 { return 0 }

func (t tested) lost() {} // the process is gone, which try notices

// testFormats are those of a test; each provider speaks one.
var testFormats = []models.Format{models.OpenAIChat, models.AnthropicMessages, models.OpenAIResponses}

// testWords are what a test asks.
const testWords = "Answer with one word: ready"

// testBody is a request that every server of the format takes. In that of responses, it is for the
// service of Codex, which wants instructions and takes no maximum.
func testBody(f models.Format, model string) []byte {
	messages := []map[string]string{{"role": "user", "content": testWords}}
	body := map[string]any{"model": model, "stream": true}
	switch f {
	case models.AnthropicMessages:
		body["messages"], body["max_tokens"] = messages, testOut
	case models.OpenAIResponses:
		body["input"], body["instructions"], body["store"] = messages, testWords, false
	default:
		body["messages"], body["max_completion_tokens"], body["stream_options"] = messages, testOut, map[string]bool{"include_usage": true}
	}
	text, _ := json.Marshal(body) // maps of words and numbers
	return text
}

// converse sends a request, and returns the beginning of an answer that is an error. It ends
// with the stream.
func converse(stream *os.File, body []byte) (said string) {
	if link.SendBody(stream, body) != nil {
		return ""
	}
	answer := link.NewReader(stream)
	head, err := answer.Head()
	for err == nil {
		var part []byte
		part, err = answer.Next()
		if head.Status != statusOK {
			said += string(part[:min(len(part), maxSaid-len(said))])
		}
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(said, "")), " ")
}

// resultOf says how a call went.
func resultOf(w *demand, d link.Done, said string) api.ModelTestResult {
	r := api.ModelTestResult{Model: w.target.Name, Provider: w.target.Provider.Name, Target: w.target.Model, Format: string(w.begin.Format), Status: d.Status,
		FirstNS: int64(d.First), TotalNS: int64(d.Total), TokensIn: d.Usage.In + d.Usage.CacheWrite, TokensCached: d.Usage.Cached, TokensOut: d.Usage.Out,
		Reported: d.Reported, Failure: failureOf(w.target, d, said)}
	if w.target.Price != nil {
		cost := w.target.Price.Cost(d.Usage, d.Tiers...)
		r.CostMicros = &cost
	}
	return r
}
