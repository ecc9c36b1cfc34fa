package control

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/internal/packet"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
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
	targets, err := c.options.Config().Resolve(name, 0, nil)
	if err != nil {
		return result, api.Failure(api.CodeNotFound, "clove models list shows the models", "%s", err)
	}
	k := &call{served: &served{}, begin: link.Begin{Format: models.OpenAIChat, Stream: true, In: testIn, Out: testOut, N: 1}}
	k.target = targets[c.health.choose(k, targets)]
	if k.target.Provider.Family == models.Anthropic {
		k.begin.Format = models.AnthropicMessages
	}
	var cancel context.CancelFunc
	k.ctx, cancel = context.WithTimeout(ctx, testTime)
	defer cancel()
	done, said, err := c.try(k)
	switch {
	case err == nil:
		c.health.report(k, done, false)
		c.learned(k, done.Limits)
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		done.Fault, err = link.FaultTime, nil
	case errors.Is(err, errCrowded):
		err = api.Failure(api.CodeBusy, "", "%s", err)
	}
	return resultOf(k, done, said), err
}

// try makes the call. said is what the provider says in an answer that is an error.
func (c *Control) try(k *call) (done link.Done, said string, err error) {
	defer k.places.end()
	if err := c.admit(k); err != nil {
		return done, "", errors.Unwrap(err)
	}
	u, err := c.provider()
	if err != nil {
		return done, "", err
	}
	near, far, err := stream()
	if err != nil {
		return done, "", err
	}
	defer packet.CloseAll([]*os.File{near, far})
	number, ended := c.expect(u)
	defer c.unexpect(number, u)
	err = u.conn.Send(link.ToUpstream{Call: &link.Call{Number: number, Provider: k.target.Provider.Name, Format: k.begin.Format,
		In: testIn, MostOut: 2*testOut + 1000}}, far)
	if err != nil {
		return done, "", err
	}
	far.Close() // the stream ends with clove-upstream's side
	defer context.AfterFunc(k.ctx, func() { near.Close() })()
	said = converse(near, testBody(k.begin.Format, k.target.Model))
	select {
	case done = <-ended:
		return done, said, nil
	case <-k.ctx.Done():
		return done, "", k.ctx.Err()
	case <-u.gone:
	}
	select {
	case done = <-ended: // it was the last that it said
		return done, said, nil
	default:
		return done, "", errors.New("clove-upstream has ended: " + u.reason())
	}
}

// expectation is a call that no run pays for.
type expectation struct {
	upstream *upstream
	done     chan link.Done
}

// expect has the end of a call reported on the channel. clove-upstream stays until unexpect.
func (c *Control) expect(u *upstream) (number uint64, ended <-chan link.Done) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	if c.tests == nil {
		c.tests = map[uint64]expectation{}
	}
	e := expectation{u, make(chan link.Done, 1)}
	c.tests[c.last] = e
	u.calls++
	return c.last, e.done
}

func (c *Control) unexpect(number uint64, u *upstream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tests, number)
	u.calls--
	c.retire(u)
}

// tested reports whether a test waits for the end of this call, and passes it on.
func (c *Control) tested(u *upstream, d link.Done) bool {
	c.mu.Lock()
	e, found := c.tests[d.Number]
	c.mu.Unlock()
	if !found || e.upstream != u {
		return false
	}
	select {
	case e.done <- d:
	default: // it ended before
	}
	return true
}

// testWords are what a test asks.
const testWords = "Answer with one word: ready"

// testBody is a request that every server of the format takes.
func testBody(f models.Format, model string) []byte {
	body := map[string]any{"model": model, "stream": true, "messages": []map[string]string{{"role": "user", "content": testWords}}}
	if f == models.AnthropicMessages {
		body["max_tokens"] = testOut
	} else {
		body["max_completion_tokens"], body["stream_options"] = testOut, map[string]bool{"include_usage": true}
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
func resultOf(k *call, d link.Done, said string) api.ModelTestResult {
	r := api.ModelTestResult{Model: k.target.Name, Provider: k.target.Provider.Name, Target: k.target.Model, Format: string(k.begin.Format), Status: d.Status,
		FirstNS: int64(d.First), TotalNS: int64(d.Total), TokensIn: d.Usage.In + d.Usage.CacheWrite, TokensCached: d.Usage.Cached, TokensOut: d.Usage.Out,
		Reported: d.Reported, Failure: failureOf(k.target, d, said)}
	if k.target.Price != nil {
		cost := k.target.Price.Cost(d.Usage, d.Tiers...)
		r.CostMicros = &cost
	}
	return r
}
