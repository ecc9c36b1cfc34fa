package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/daemon/traces/tracetest"
	"clove.run/clove/store"
)

// TestTheLogSaysWhenAgentsEnd: how, and with which exit code; also for foreground runs.
func TestTheLogSaysWhenAgentsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var log Tail
	r.d.log = slog.New(slog.NewTextHandler(&log, nil))
	c := r.serve()
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("mine")})
	must(t, err)
	foreground := spec("foreground")
	foreground.Remove = true
	_, _, err = r.start(supervisor.Order{Spec: foreground})
	must(t, err)
	r.end("mine", 3)
	r.end("foreground", 0)
	r.counted(`clove_ends_total{status="exited"} 2`)
	for _, end := range []string{"msg=ended run=mine id=", "status=exited exit_code=3\n", "msg=ended run=foreground id=", "exit_code=0\n"} {
		if !strings.Contains(log.String(), end) {
			t.Errorf("there is no %q in\n%s", end, log.String())
		}
	}
}

// counted waits until the metrics have every line: an event is counted a moment after it is
// stored.
func (r *rig) counted(lines ...string) {
	r.t.Helper()
	ctx := within(r.t)
	for {
		moved := r.d.cache.changed()
		var text bytes.Buffer
		must(r.t, r.d.meter.Write(&text))
		missing := ""
		for _, line := range lines {
			if !strings.Contains("\n"+text.String(), "\n"+line+"\n") {
				missing = line
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-moved:
		case <-time.After(10 * time.Millisecond): // it is counted after the change
		case <-ctx.Done():
			r.t.Fatalf("there is no %q in\n%s", missing, &text)
		}
	}
}

// Foreground runs are counted like those that cloved starts, with --rm too. The next cloved
// begins at 0 and does not count them again.
func TestCountsWhateverHappens(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("before", agent.Owner{}, agent.StateEnded)
	c := r.serve()
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("mine")})
	must(t, err)
	foreground := spec("foreground")
	foreground.Remove = true
	_, _, err = r.start(supervisor.Order{Spec: foreground})
	must(t, err)
	must(t, r.records.with(func(s *store.Store) error {
		n := int64(9)
		_, err := s.Finish(foreground.ID, agent.EventRecorded, agent.Record{Version: agent.RecordVersion, ID: foreground.ID, Name: "foreground",
			Status: agent.StatusOOM, ExitCode: 137, Limit: &agent.LimitHit{Name: agent.ControlMemory}, Usage: agent.Usage{NetRxBytes: &n},
			Network: &agent.NetworkUse{Refused: 4}}, nil)
		return err
	}))
	r.counted("clove_starts_total 2", `clove_ends_total{status="oom"} 1`, `clove_ends_total{status="exited"} 0`, `clove_limit_hits_total{limit="memory"} 1`,
		"clove_gate_receive_bytes_total 9", "clove_network_denials_total 4", "clove_start_seconds_count 2",
		`clove_agents{state="running"} 1`, `clove_agents{state="ended"} 1`, "clove_memory_counted_bytes 1.6777216e+07")
	next := New(r.d.options)
	var text bytes.Buffer
	must(t, next.cache.refresh())
	must(t, next.meter.Write(&text))
	if !strings.Contains(text.String(), "\nclove_starts_total 0\n") || !strings.Contains(text.String(), "\nclove_agents{state=\"running\"} 1\n") {
		t.Error(text.String())
	}
}

// Calls are counted by their result, and waiting callers are counted.
func TestCountsCallsAndTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("first"), DelayNS: int64(time.Hour)})
	must(t, err)
	second := spec("second")
	second.After = []string{"first"}
	_, err = client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: second})
	must(t, err)
	_, err = client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("first")})
	wantCode(t, err, api.CodeConflict)
	raw := r.dial()
	must(t, raw.Request("no.such", nil))
	_, err = raw.Receive()
	must(t, err)
	_, err = raw.Write([]byte(`{"jsonrpc":"2.0","method":"run.get","params":{"run":"no-such-run"}}` + "\n"))
	must(t, err)
	r.counted(`clove_api_requests_total{code="ok",method="run.start"} 2`, `clove_api_requests_total{code="conflict",method="run.start"} 1`,
		`clove_api_requests_total{code="method",method="unknown"} 1`, `clove_api_requests_total{code="not-found",method="run.get"} 1`,
		`clove_api_request_seconds_count{method="run.start"} 3`, `clove_queue_length{reason="time"} 1`, `clove_queue_length{reason="order"} 1`,
		"clove_store_commit_seconds_count 2", "clove_store_errors_total 0", "clove_api_connections 2", "clove_draining 0")
	r.d.reconciler.drain(true)
	r.counted(`clove_queue_length{reason="drain"} 2`, `clove_queue_length{reason="time"} 0`, "clove_draining 1")
}

// Every gauge of the table is supplied, with its labels.
func TestEveryGaugeIsSupplied(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	must(t, r.d.cache.refresh())
	var text bytes.Buffer
	must(t, r.d.meter.Write(&text))
	for _, row := range metrics.Table {
		if row.Kind == metrics.Gauge && !strings.Contains(text.String(), "\n"+row.Name) {
			t.Errorf("%s is not supplied", row.Name)
		}
	}
}

// A reader that comes too late is notified of the loss, which is counted.
func TestCountsDroppedEvents(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		after, last uint64
		news        []agent.RunEvent
		missed      uint64
	}{{3, 9, []agent.RunEvent{{Sequence: 7}, {Sequence: 8}, {Sequence: 9}}, 3}, {3, 9, nil, 6}, {3, 4, []agent.RunEvent{{Sequence: 4}}, 0}} {
		if got := missed(row.after, row.last, row.news); got != row.missed {
			t.Errorf("%+v: %d", row, got)
		}
	}
	r := newRig(t, nil)
	c := r.serve()
	run := r.add("one", agent.Owner{}, agent.StateEnded)
	must(t, r.d.cache.refresh())
	r.d.cache.mu.Lock()
	r.d.cache.past = r.d.cache.past[2:] // as if many events had happened
	r.d.cache.mu.Unlock()
	gaps := 0
	zero := uint64(0)
	_, err := client.Each(within(t), c, methods.EventFollow, api.EventParams{After: &zero}, func(n api.EventNote) error {
		if n.Gap {
			gaps++
		}
		return nil
	})
	must(t, err)
	if gaps != 1 || run.Spec.ID == "" {
		t.Errorf("%d gaps", gaps)
	}
	r.counted("clove_event_notifications_dropped_total 2")
}

// Spans of a cloved that serves: the call below its caller's span, the start below the call,
// the life of the run with its end; and nothing of the agent's environment.
func TestTracesARun(t *testing.T) {
	collector := tracetest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, err := traces.FromEnvironment(context.Background(), "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	must(t, err)
	r := newRig(t, nil)
	r.d.tracer, r.d.reconciler.tracer = tracer, tracer
	c := r.serve()
	s := spec("traced")
	s.Env, s.Command, s.Remove = []string{"TOKEN=planted"}, []string{"sh", "planted"}, true
	_, err = client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	must(t, err)
	r.counted("clove_starts_total 1") // the start is traced while there is a run, and with --rm it is gone with its end
	must(t, r.records.with(func(st *store.Store) error {
		_, err := st.Finish(s.ID, agent.EventRecorded, agent.Record{Version: agent.RecordVersion, ID: s.ID, Name: s.Name, Status: agent.StatusExited}, nil)
		return err
	}))
	r.counted(`clove_ends_total{status="exited"} 1`)
	_, err = client.Do(within(t), c, methods.RunGet, api.RunParams{Run: "traced"})
	wantCode(t, err, api.CodeNotFound)
	must(t, tracer.Close(context.Background()))
	spans, _ := collector.Now()
	for name, status := range map[string]string{"run.start": "", "queue": "", "start": "", "run": "exited"} {
		span := tracetest.Find(spans, name)
		if span == nil || !bytes.HasPrefix(span.TraceId, []byte{0x0a, 0xf7}) || tracetest.Text(span, "clove.run.name") != "traced" || tracetest.Text(span, "clove.status") != status {
			t.Errorf("%s: %v", name, span)
		}
	}
	if get := tracetest.Find(spans, "run.get"); get == nil || tracetest.Text(get, "clove.code") != "not-found" {
		t.Errorf("%v", get)
	}
	if raw, service := collector.Raw(); bytes.Contains(raw, []byte("planted")) || service != "cloved" {
		t.Errorf("%q sent %q", service, raw)
	}
}

// The archive for debugging is for root, has all its parts and no secret.
func TestLookInside(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	tail := new(Tail)
	r.d.options.LogTail = tail
	slog.New(slog.NewTextHandler(tail, nil)).Info("hello")
	c := r.serve()
	s := spec("waits")
	s.Env, s.Command, s.Labels = []string{"TOKEN=planted"}, []string{"sh", "planted"}, map[string]string{"a": "planted"}
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s, DelayNS: int64(time.Hour)})
	must(t, err)
	for part, says := range map[api.DebugPart]string{
		api.DebugVersions: "cloved test", api.DebugGoroutines: "TestLookInside", api.DebugHeap: "heap profile", api.DebugConfiguration: `"log_cap": "64M"`,
		api.DebugQueue: "waits since", api.DebugMetrics: "clove_agents", api.DebugLog: "msg=hello",
	} {
		answer, err := client.Do(within(t), c, methods.Debug, api.DebugParams{Part: part})
		if err != nil || !strings.Contains(answer.Text, says) || strings.Contains(answer.Text, "planted") {
			t.Errorf("%s: %v, %s", part, err, answer.Text)
		}
	}
	if len(debugParts) != len(api.DebugParts) {
		t.Errorf("%d parts of %d", len(debugParts), len(api.DebugParts))
	}
	_, err = client.Do(within(t), c, methods.Debug, api.DebugParams{Part: "secrets"})
	wantCode(t, err, api.CodeParams)
	params, _ := json.Marshal(api.DebugParams{Part: api.DebugQueue})
	m, _ := methods.Find(methods.Debug.Name)
	_, err = r.d.dispatcher().allow(ownerCaller.principal, m, decoded(m, params))
	wantCode(t, err, api.CodeDenied)
}

// The parts that need no lock of cloved are there although all locks are held.
func TestLookInsideOfOneThatHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	r.d.cache.mu.Lock()
	r.d.reconciler.mu.Lock()
	for _, part := range []api.DebugPart{api.DebugVersions, api.DebugGoroutines, api.DebugHeap, api.DebugConfiguration, api.DebugLog} {
		if _, err := client.Do(within(t), c, methods.Debug, api.DebugParams{Part: part}); err != nil {
			t.Errorf("%s: %v", part, err)
		}
	}
	r.d.reconciler.mu.Unlock()
	r.d.cache.mu.Unlock()
}

func TestTailKeepsTheLast(t *testing.T) {
	t.Parallel()
	var tail Tail
	for i := range tailLines + 3 {
		_, _ = tail.Write([]byte{byte('a' + i%26), '\n'})
	}
	text := tail.String()
	if lines := strings.Count(text, "\n"); lines != tailLines || text[0] != byte('a'+3%26) || text[len(text)-2] != byte('a'+(tailLines+2)%26) {
		t.Errorf("%d lines, from %c to %c", lines, text[0], text[len(text)-2])
	}
	var none *Tail
	if none.String() != "" {
		t.Error("none remembers something")
	}
}
