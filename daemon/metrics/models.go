package metrics

import (
	"cmp"

	"clove.run/clove/models"
)

// The metrics that begin with gen_ai are those of OpenTelemetry's conventions for generative
// AI, as its exporter for Prometheus spells them, so that a dashboard made for others shows
// clove's agents. The conventions have no place for money, refusals, the wait for a turn, and
// two providers that speak one family: those are clove's own. Only the conventions' client
// side is measured: what they call a server is the provider.
//
// gen_ai.response.model and the agent's name are labels of neither: a provider or a user could
// make a series for each call. They are in the spans.

// model and provider are names of models.yaml, which root writes.
var (
	model    = Label{Name: "model", Of: "the models of models.yaml, and unknown"}
	provider = Label{Name: "provider", Of: "the providers of models.yaml, and unknown"}
)

// genAI are the labels that all metrics of the conventions have.
func genAI() []Label {
	return []Label{{Name: "gen_ai_operation_name", Values: []string{models.OpenAIChat.Operation(), models.AnthropicCount.Operation()}},
		{Name: "gen_ai_provider_name", Values: []string{string(models.OpenAI), string(models.Anthropic)}},
		{Name: "gen_ai_request_model", Of: "the providers' names of the models of models.yaml"}}
}

// Buckets. Those of the conventions are as these want them.
var (
	waitBuckets     = []float64{.001, .01, .1, .5, 1, 2.5, 5, 10, 30, 60, 300}
	genSeconds      = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	genTokenBuckets = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// TokenKinds are the values of the label kind.
var TokenKinds = []string{"in", "cached", "cache-write", "out", "reasoning"}

// microsInDollar are the millionths in one.
const microsInDollar = 1e6

// ModelCalled counts a call of a model that has ended.
func (m *Meter) ModelCalled(c models.Call) {
	name, at := cmp.Or(c.Model, Unknown), cmp.Or(c.Provider, Unknown)
	m.count(modelCalls, 1, name, at, string(c.Outcome))
	if c.Outcome == models.OutcomeRefused {
		m.count(modelRefusals, 1, c.Reason)
		return
	}
	m.observe(modelWait, c.Wait, at)
	if c.Total == 0 { // its client went while it waited
		return
	}
	u := c.Usage
	for i, n := range []int64{u.In, u.Cached, u.CacheWrite, u.Out, u.Reasoning} {
		m.count(modelTokens, float64(n), name, at, TokenKinds[i])
	}
	m.count(modelCost, float64(c.Cost)/microsInDollar, name, at)
	m.generated(c)
}

// generated counts as the conventions want it.
func (m *Meter) generated(c models.Call) {
	labels := []string{c.Format.Operation(), string(c.Format.Family()), c.Target}
	failed := ""
	if c.Outcome != models.OutcomeOK {
		failed = string(c.Outcome)
	}
	m.observe(genDuration, c.Total, append(labels, failed)...)
	if c.Stream && c.First > 0 {
		m.observe(genFirst, c.First, labels...)
	}
	for kind, n := range map[string]int64{"input": c.Usage.Input(), "output": c.Usage.Out} {
		m.histograms[genTokens].WithLabelValues(append(labels, kind)...).Observe(float64(n))
	}
}
