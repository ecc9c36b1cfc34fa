package traces

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"clove.run/clove/agent"
	"clove.run/clove/models"
)

// ModelCall traces a call of a model that has ended, in the trace of its run, as OpenTelemetry's
// conventions for generative AI want it. The span that the agent's client names is linked and
// never the parent: an agent could name one of another trace, and hide its call there or have
// it left out.
func (t *Tracer) ModelCall(run agent.Run, c models.Call) {
	if t == nil {
		return
	}
	ctx, options := related(run.Queue.Trace, run.Queue.Starts)
	if client := trace.SpanContextFromContext(within(context.Background(), c.Trace)); client.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: client}))
	}
	name := c.Format.Operation()
	if c.Target != "" {
		name += " " + c.Target
	}
	options = append(options, trace.WithTimestamp(c.Began), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(runAttributes(run.Spec.ID, run.Spec.Name)...), trace.WithAttributes(callAttributes(c)...))
	_, span := t.tracer.Start(ctx, name, options...)
	if failed := errorType(c); failed != "" {
		span.SetStatus(codes.Error, failed)
	}
	span.End()
}

// errorType is a word of a closed set; empty: the call succeeded.
func errorType(c models.Call) string {
	switch c.Outcome {
	case models.OutcomeOK:
		return ""
	case models.OutcomeRefused:
		return c.Reason
	}
	return string(c.Outcome)
}

// callAttributes are what the conventions name, and with the prefix clove what they do not.
func callAttributes(c models.Call) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.Bool("gen_ai.request.stream", c.Stream), attribute.Float64("clove.wait", c.Wait.Seconds())}
	for _, text := range []struct{ name, value string }{
		{"gen_ai.operation.name", c.Format.Operation()}, {"gen_ai.provider.name", string(c.Format.Family())},
		{"gen_ai.request.model", c.Target}, {"gen_ai.response.model", c.Answered}, {"error.type", errorType(c)},
		{"clove.model", c.Model}, {"clove.provider", c.Provider}, {"clove.correlation", c.ID},
	} {
		if text.value != "" {
			all = append(all, attribute.String(text.name, text.value))
		}
	}
	if c.Stream && c.First > 0 {
		all = append(all, attribute.Float64("gen_ai.response.time_to_first_chunk", c.First.Seconds()))
	}
	if c.Status > 0 {
		all = append(all, attribute.Int("http.response.status_code", c.Status))
	}
	if c.Total == 0 {
		return all // nothing was sent
	}
	u := c.Usage
	return append(all, attribute.Int64("gen_ai.usage.input_tokens", u.Input()), attribute.Int64("gen_ai.usage.output_tokens", u.Out),
		attribute.Int64("gen_ai.usage.cache_read.input_tokens", u.Cached), attribute.Int64("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite),
		attribute.Int64("gen_ai.usage.reasoning.output_tokens", u.Reasoning), attribute.Int64("clove.cost_micros", c.Cost))
}
