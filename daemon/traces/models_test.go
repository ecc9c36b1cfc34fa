package traces

import (
	"bytes"
	"context"
	"testing"
	"time"

	v1 "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/traces/tracetest"
	"clove.run/clove/models"
)

// attributes are those of a span, as they are printed.
func attributes(s *trace.Span) map[string]*v1.AnyValue {
	all := map[string]*v1.AnyValue{}
	for _, a := range s.Attributes {
		all[a.Key] = a.Value
	}
	return all
}

// A call of a model is a span in the trace of its run, with the names and figures of the
// conventions.
func TestAModelCallIsASpan(t *testing.T) {
	tracer, spans, _ := open(t)
	ctx, start := tracer.Call(context.Background(), methods.RunStart.Name, 0, nil)
	r := run(tracer.Carry(ctx), 1)
	start.End("ok")
	began := time.Now().Add(-3 * time.Second)
	tracer.ModelCall(r, models.Call{ID: "c1", Model: "small", Provider: "near", Target: "small-1", Answered: "small-1-2026", Format: models.OpenAIChat, Stream: true,
		Outcome: models.OutcomeOK, Status: 200, Usage: models.Usage{In: 10, Cached: 3, CacheWrite: 2, Out: 20, Reasoning: 8}, Cost: 1500,
		Began: began, Wait: time.Second, First: 1500 * time.Millisecond, Total: 2 * time.Second})
	all := spans()
	span, parent := tracetest.Find(all, "chat small-1"), tracetest.Find(all, "run.start")
	if span == nil || parent == nil || !bytes.Equal(span.ParentSpanId, parent.SpanId) || span.Kind != trace.Span_SPAN_KIND_CLIENT || span.StartTimeUnixNano != uint64(began.UnixNano()) || len(span.Links) != 0 {
		t.Fatalf("%v", span)
	}
	got := attributes(span)
	for name, want := range map[string]string{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "small-1", "gen_ai.response.model": "small-1-2026",
		"clove.model": "small", "clove.provider": "near", "clove.correlation": "c1", "clove.run.id": "0123456789abcdef", "clove.run.name": "one"} {
		if got[name].GetStringValue() != want {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	for name, want := range map[string]int64{"gen_ai.usage.input_tokens": 15, "gen_ai.usage.output_tokens": 20, "gen_ai.usage.cache_read.input_tokens": 3,
		"gen_ai.usage.cache_creation.input_tokens": 2, "gen_ai.usage.reasoning.output_tokens": 8, "http.response.status_code": 200, "clove.cost_micros": 1500} {
		if got[name].GetIntValue() != want {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if got["gen_ai.response.time_to_first_chunk"].GetDoubleValue() != 1.5 || got["clove.wait"].GetDoubleValue() != 1 || !got["gen_ai.request.stream"].GetBoolValue() || got["error.type"] != nil {
		t.Errorf("%v", got)
	}
}

// The span that a client names is a link: the call stays in the trace of its run, also
// where the client wants that nothing of it is sampled.
func TestAClientsSpanIsLinked(t *testing.T) {
	tracer, spans, _ := open(t)
	const client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, row := range []struct{ trace, target string }{{client, "linked"}, {"00-zz", "odd"}, {"", "none"}} {
		tracer.ModelCall(run("", 1), models.Call{Target: row.target, Format: models.AnthropicMessages, Trace: row.trace, Outcome: models.OutcomeRefused, Reason: "budget", Began: time.Now()})
	}
	all := spans()
	for target, links := range map[string]int{"linked": 1, "odd": 0, "none": 0} {
		span := tracetest.Find(all, "chat "+target)
		if span == nil || len(span.Links) != links || bytes.HasPrefix(span.TraceId, []byte("\x0a\xf7\x65\x19")) || len(span.ParentSpanId) != 0 {
			t.Fatalf("%s: %v", target, span)
		}
		if links == 1 && !bytes.HasPrefix(span.Links[0].SpanId, []byte("\xb7\xad\x6b\x71")) {
			t.Errorf("%v", span.Links)
		}
		if span.Status.GetCode() != trace.Status_STATUS_CODE_ERROR || tracetest.Text(span, "error.type") != "budget" || attributes(span)["gen_ai.usage.input_tokens"] != nil {
			t.Errorf("%v", span)
		}
	}
	var none *Tracer
	none.ModelCall(run("", 1), models.Call{}) // does nothing
}
