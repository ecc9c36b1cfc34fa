package traces

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/daemon/traces/tracetest"
)

// open makes a tracer as cloved's environment would configure it, and a function that returns
// its spans.
func open(t *testing.T) (*Tracer, func() []*trace.Span, *tracetest.Collector) {
	t.Helper()
	c := tracetest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_SERVICE_NAME", "another-name")
	tracer, err := FromEnvironment(context.Background(), "1.2.3", slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil || tracer == nil {
		t.Fatalf("%v, %v", tracer, err)
	}
	return tracer, func() []*trace.Span {
		if err := tracer.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		spans, _ := c.Now()
		return spans
	}, c
}

func run(carried string, starts int) agent.Run {
	return agent.Run{Spec: agent.Spec{ID: "0123456789abcdef", Name: "one", Command: []string{"sh", "planted-argument"}, Env: []string{"KEY=planted-value"}},
		Queue: agent.QueueState{Trace: carried, Starts: starts, Since: time.Now().Add(-time.Second)}}
}

// All spans of a run are one trace, below its caller's span, and contain nothing of the
// agent's environment.
func TestOneTraceFromCallToEnd(t *testing.T) {
	tracer, spans, c := open(t)
	params := api.StartParams{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	ctx, call := tracer.Call(context.Background(), methods.RunStart.Name, 1000, params)
	r := run(tracer.Carry(ctx), 1)
	tracer.About(ctx, r)
	call.End("ok")
	began := time.Now()
	tracer.Started(r, began, []supervisor.Step{{Name: "rootfs", Began: began, Took: 1}}, "")
	code := 3
	tracer.Lived(Life{Began: began, Trace: r.Queue.Trace, Starts: 1}, agent.RunEvent{ID: r.Spec.ID, Name: "one", Time: time.Now(), Status: agent.StatusExited, ExitCode: &code})
	all := spans()
	parents := map[string]string{"run.start": "", "queue": "run.start", "start": "run.start", "launch.rootfs": "start", "run": "run.start"}
	if len(all) != len(parents) {
		t.Fatalf("%d spans: %v", len(all), all)
	}
	for name, parent := range parents {
		span := tracetest.Find(all, name)
		switch {
		case span == nil:
			t.Errorf("there is no span %s", name)
		case !strings.HasPrefix(string(span.TraceId), "\x0a\xf7\x65\x19"):
			t.Errorf("%s is in trace %x", name, span.TraceId)
		case parent != "" && !bytes.Equal(span.ParentSpanId, tracetest.Find(all, parent).SpanId):
			t.Errorf("%s is not below %s", name, parent)
		case span.EndTimeUnixNano < span.StartTimeUnixNano:
			t.Errorf("%s ends before it begins", name)
		}
	}
	if life := tracetest.Find(all, "run"); tracetest.Text(life, "clove.status") != "exited" || life.Status.GetCode() != trace.Status_STATUS_CODE_ERROR {
		t.Errorf("%v", life)
	}
	raw, service := c.Raw()
	if bytes.Contains(raw, []byte("planted")) || service != "another-name" {
		t.Errorf("service %q, and what was sent: %q", service, raw)
	}
}

// A restart of a run is a trace of its own, and so is another call about it; both are linked
// to the first.
func TestLaterTracesAreLinked(t *testing.T) {
	tracer, spans, _ := open(t)
	ctx, call := tracer.Call(context.Background(), methods.RunStart.Name, 0, nil)
	r := run(tracer.Carry(ctx), 2)
	call.End("ok")
	tracer.Started(r, time.Now(), nil, "rootfs")
	stop, call := tracer.Call(context.Background(), methods.RunStop.Name, 0, nil)
	tracer.About(stop, r)
	call.End("conflict")
	_, call = tracer.Call(context.Background(), "planted-method", 0, nil)
	call.End("method")
	all := spans()
	first := tracetest.Find(all, "run.start")
	for _, name := range []string{"start", "run.stop"} {
		span := tracetest.Find(all, name)
		if bytes.Equal(span.TraceId, first.TraceId) || len(span.Links) != 1 || !bytes.Equal(span.Links[0].SpanId, first.SpanId) ||
			span.Status.GetCode() != trace.Status_STATUS_CODE_ERROR {
			t.Errorf("%s: %v", name, span)
		}
	}
	if tracetest.Find(all, "unknown") == nil || tracetest.Find(all, "planted-method") != nil {
		t.Error("a caller can name a span")
	}
}

// Without a tracer nothing is recorded or kept.
func TestNilTracer(t *testing.T) {
	var tracer *Tracer
	ctx, call := tracer.Call(context.Background(), methods.RunStart.Name, 0, nil)
	tracer.About(ctx, run("", 1))
	call.End("ok")
	tracer.Started(run("", 1), time.Now(), nil, "")
	tracer.Lived(Life{}, agent.RunEvent{})
	if tracer.Carry(ctx) != "" || tracer.Close(ctx) != nil {
		t.Error("a tracer that is none did something")
	}
}

func TestMalformedParentsAreIgnored(t *testing.T) {
	tracer, spans, _ := open(t)
	for _, params := range []any{api.StartParams{Traceparent: "00-zz-1-01"}, api.StartParams{}, api.StopParams{}, nil} {
		_, call := tracer.Call(context.Background(), methods.RunStart.Name, 0, params)
		call.End("ok")
	}
	for _, span := range spans() {
		if len(span.ParentSpanId) != 0 {
			t.Errorf("%v", span)
		}
	}
}
