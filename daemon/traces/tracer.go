package traces

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/supervisor"
)

// Tracer makes spans. All methods of a nil Tracer do nothing.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Close hands over what is left, at most until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is one API call. The zero value, of a nil Tracer, does nothing.
type Span struct{ span trace.Span }

// Call begins the span of an API call. Where the parameters name the caller's
// own span it is that one's child. The caller chooses what it sends, so a
// method that does not exist has no name here.
func (t *Tracer) Call(ctx context.Context, method string, uid uint32, params any) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	row, known := methods.Find(method)
	if !known {
		row.Name = "unknown"
	}
	// The one method with a field for it (api.StartParams).
	if start, is := params.(api.StartParams); is {
		ctx = within(ctx, start.Traceparent)
	}
	ctx, span := t.tracer.Start(ctx, row.Name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system", "jsonrpc"), attribute.String("rpc.method", row.Name), attribute.Int64("clove.caller.uid", int64(uid))))
	return ctx, Span{span}
}

// AgentCall begins the span of an agent's call, in the trace of its run. id is the call's, as
// the audit log has it in correlation.
func (t *Tracer) AgentCall(run agent.Run, method, id string) Span {
	if t == nil {
		return Span{}
	}
	row, known := methods.Find(method)
	if !known || !row.ForAgents() {
		row.Name = "unknown" // an agent chooses what it sends
	}
	ctx, options := related(run.Queue.Trace, run.Queue.Starts)
	options = append(options, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(runAttributes(run.Spec.ID, run.Spec.Name)...),
		trace.WithAttributes(attribute.String("rpc.system", "jsonrpc"), attribute.String("rpc.method", row.Name), attribute.String("clove.correlation", id)))
	_, span := t.tracer.Start(ctx, "agent."+row.Name, options...)
	return Span{span}
}

// End ends the span of a call with a code's word.
func (s Span) End(word string) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(attribute.String("clove.code", word))
	if word != done {
		s.span.SetStatus(codes.Error, word)
	}
	s.span.End()
}

const done = "ok"

// About says which run a call is about, and links the call to the trace in which the run
// was asked for, if that is another one.
func (t *Tracer) About(ctx context.Context, run agent.Run) {
	if t == nil || run.Spec.ID == "" {
		return
	}
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(runAttributes(run.Spec.ID, run.Spec.Name)...)
	if first := trace.SpanContextFromContext(within(context.Background(), run.Queue.Trace)); first.IsValid() && first.TraceID() != span.SpanContext().TraceID() {
		span.AddLink(trace.Link{SpanContext: first})
	}
}

// Carry returns the span of ctx as a run keeps it; empty without one.
func (t *Tracer) Carry(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	if t != nil {
		propagation.TraceContext{}.Inject(ctx, carrier)
	}
	return carrier[traceparent]
}

// traceparent is the header of the W3C's trace context.
const traceparent = "traceparent"

// within puts what Carry returned back into a context. A value that is not one
// is ignored, as the W3C wants it.
func within(ctx context.Context, carried string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: carried})
}

// Started traces how a run waited, and its start between began and now. failed names the step that failed; empty: none did.
func (t *Tracer) Started(run agent.Run, began time.Time, steps []supervisor.Step, failed string) {
	if t == nil {
		return
	}
	// Everything has happened already, so each span gets the times at which it did.
	ended := time.Now()
	ctx, link := related(run.Queue.Trace, run.Queue.Starts)
	options := []trace.SpanStartOption{trace.WithAttributes(runAttributes(run.Spec.ID, run.Spec.Name)...)}
	options = append(options, link...)
	if joined := run.Queue.Since; !joined.IsZero() {
		_, span := t.tracer.Start(ctx, "queue", append(options, trace.WithTimestamp(joined))...)
		span.End(trace.WithTimestamp(began))
	}
	ctx, span := t.tracer.Start(ctx, "start", append(options, trace.WithTimestamp(began))...)
	for _, s := range steps {
		_, part := t.tracer.Start(ctx, "launch."+s.Name, trace.WithTimestamp(s.Began))
		part.End(trace.WithTimestamp(s.Began.Add(s.Took)))
	}
	if failed != "" {
		span.SetStatus(codes.Error, failed)
	}
	span.End(trace.WithTimestamp(ended))
}

// Life is an agent that executes.
type Life struct {
	Began  time.Time
	Trace  string // what its run keeps
	Starts int    // how often the run was queued
}

// Lived traces a life that ended with the event.
func (t *Tracer) Lived(l Life, end agent.RunEvent) {
	if t == nil {
		return
	}
	ctx, options := related(l.Trace, l.Starts)
	_, span := t.tracer.Start(ctx, "run", append(options, trace.WithTimestamp(l.Began), trace.WithAttributes(runAttributes(end.ID, end.Name)...))...)
	span.SetAttributes(attribute.String("clove.status", string(end.Status)))
	if end.ExitCode != nil {
		span.SetAttributes(attribute.Int("clove.exit_code", *end.ExitCode))
		if *end.ExitCode != 0 {
			span.SetStatus(codes.Error, string(end.Status))
		}
	}
	span.End(trace.WithTimestamp(end.Time))
}

// related makes a span the child of what a run keeps, or, of a run that was
// queued again, links it: a trace that goes on for months shows nothing.
func related(carried string, starts int) (context.Context, []trace.SpanStartOption) {
	ctx := within(context.Background(), carried)
	if starts <= 1 {
		return ctx, nil
	}
	return context.Background(), []trace.SpanStartOption{trace.WithLinks(trace.Link{SpanContext: trace.SpanContextFromContext(ctx)})}
}

// runAttributes are on every span that is about a run. Both are needed: a name can be
// another run's later.
func runAttributes(id agent.ID, name string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("clove.run.id", string(id)), attribute.String("clove.run.name", name)}
}
