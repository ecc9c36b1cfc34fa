package metrics

import (
	"strings"
	"testing"
	"time"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// modelCall is one that has every figure.
func modelCall() models.Call {
	return models.Call{Model: "small", Provider: "near", Target: "small-1", Answered: "planted", Format: models.OpenAIChat, Stream: true, Outcome: models.OutcomeOK,
		Status: 200, Usage: models.Usage{In: 10, Cached: 3, CacheWrite: 2, Out: 20, Reasoning: 8}, Cost: 1500,
		Wait: 20 * time.Millisecond, First: 150 * time.Millisecond, Total: 3 * time.Second}
}

// A call is in clove's own metrics and in those of the conventions, each kind of token once.
func TestModelCalled(t *testing.T) {
	t.Parallel()
	m := newMeter()
	m.ModelCalled(modelCall())
	const own, general = `model="small",provider="near"`, `gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="small-1"`
	wants(t, text(t, m), `clove_model_calls_total{model="small",outcome="ok",provider="near"} 1`,
		`clove_model_tokens_total{kind="in",`+own+`} 10`, `clove_model_tokens_total{kind="cached",`+own+`} 3`, `clove_model_tokens_total{kind="cache-write",`+own+`} 2`,
		`clove_model_tokens_total{kind="out",`+own+`} 20`, `clove_model_tokens_total{kind="reasoning",`+own+`} 8`, `clove_model_cost_dollars_total{`+own+`} 0.0015`,
		`clove_model_wait_seconds_sum{provider="near"} 0.02`, `gen_ai_client_operation_duration_seconds_sum{error_type="",`+general+`} 3`,
		`gen_ai_client_operation_time_to_first_chunk_seconds_sum{`+general+`} 0.15`,
		`gen_ai_client_token_usage_sum{`+general+`,gen_ai_token_type="input"} 15`, `gen_ai_client_token_usage_sum{`+general+`,gen_ai_token_type="output"} 20`)
}

// A call without a stream has no time to the first chunk, and a failed one has its kind of failure.
func TestModelCallsThatFail(t *testing.T) {
	t.Parallel()
	m := newMeter()
	c := modelCall()
	c.Stream, c.Outcome, c.Usage, c.Cost = false, models.OutcomeOverloaded, models.Usage{}, 0
	m.ModelCalled(c)
	for _, reason := range link.Reasons {
		m.ModelCalled(models.Call{Outcome: models.OutcomeRefused, Reason: string(reason)})
	}
	m.ModelCalled(models.Call{Model: "small", Provider: "near", Outcome: models.OutcomeCancelled, Wait: time.Second}) // while it waited
	got := text(t, m)
	wants(t, got, `clove_model_calls_total{model="small",outcome="overloaded",provider="near"} 1`, `clove_model_calls_total{model="unknown",outcome="refused",provider="unknown"} 8`,
		`clove_model_refusals_total{reason="budget"} 1`, `clove_model_refusals_total{reason="context-length"} 1`, `clove_model_wait_seconds_count{provider="near"} 2`,
		`gen_ai_client_operation_duration_seconds_count{error_type="overloaded",gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="small-1"} 1`)
	if strings.Contains(got, "time_to_first_chunk_seconds_count") || strings.Contains(got, `provider="unknown"} 1`) {
		t.Error(got)
	}
}

// Whatever agents and providers send, the number of series stays that of the configuration.
func TestModelSeriesAreBounded(t *testing.T) {
	t.Parallel()
	series := func(calls int) int {
		m := newMeter()
		for i := range calls {
			c := modelCall()
			c.ID, c.Answered, c.Status = strings.Repeat("x", i), strings.Repeat("y", i), i
			m.ModelCalled(c)
		}
		got := text(t, m)
		return strings.Count(got, "\nclove_model") + strings.Count(got, "\ngen_ai")
	}
	if one, many := series(1), series(100); many != one {
		t.Errorf("%d series after one call, %d after a hundred", one, many)
	}
}
