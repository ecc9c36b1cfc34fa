package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/client"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/daemon/traces/tracetest"
	"clove.run/clove/kernel/service"
)

// recorded returns the records that a query chooses.
func recorded(t *testing.T, c *client.Client, p api.AuditQueryParams) (all []audit.Entry) {
	t.Helper()
	_, err := client.Each(within(t), c, methods.AuditQuery, p, func(n api.AuditRecordNote) error {
		var e audit.Entry
		must(t, json.Unmarshal(n.Record, &e))
		all = append(all, e)
		return nil
	})
	must(t, err)
	return all
}

// eventually waits for what other goroutines of cloved do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

// Each request of a caller is in the log with its caller, also a refused one.
// Reading is not.
func TestCallsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	run := r.add("there", agent.Owner{UID: 1000}, agent.StateEnded)
	_, err := client.Do(within(t), c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: string(run.Spec.ID)}, Name: "renamed"})
	must(t, err)
	_, err = client.Do(within(t), c, methods.RunGet, api.RunParams{Run: "no-such-run"})
	wantCode(t, err, api.CodeNotFound)
	wantCode(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "no-such-run"}}), api.CodeNotFound)
	var got []string
	eventually(t, "both are recorded", func() bool {
		got = nil
		for _, e := range recorded(t, c, api.AuditQueryParams{}) {
			if e.Principal != "" {
				got = append(got, strings.Join([]string{string(e.Kind), e.Method, e.Verdict, e.Code, e.Agent, e.Principal}, " "))
				if e.Digest == "" || e.What != "sha256:"+e.Digest {
					t.Errorf("%+v", e)
				}
			}
		}
		return len(got) >= 2
	})
	uid := audit.PrincipalUser(uint32(os.Getuid()))
	if want := []string{"admin run.rename allow  there " + uid, "admin run.remove deny not-found  " + uid}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A refused budget.set is in the log with what it was to change, and once; one that cannot be read
// has its digest. The control is one that is done.
func TestARefusedBudgetIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	for _, row := range []struct {
		params any
		code   api.Code
	}{
		{api.BudgetSetParams{Account: "7/name:x", Limits: []string{"reviews=1"}}, passes},
		{api.BudgetSetParams{Account: "7/name:x", Limits: []string{"reviews=none"}}, api.CodeParams},
		{api.BudgetSetParams{Account: "7/name:x", Reset: []string{"pages"}}, api.CodeNotFound},
		{map[string]any{"account": 7}, api.CodeParams},
	} {
		if err := c.Call(within(t), methods.BudgetSet.Name, row.params, nil); row.code == passes {
			must(t, err)
		} else {
			wantCode(t, err, row.code)
		}
	}
	var got []string
	eventually(t, "all are recorded", func() bool {
		got = nil
		for _, e := range recorded(t, c, api.AuditQueryParams{}) {
			if e.Method == methods.BudgetSet.Name {
				got = append(got, strings.Join([]string{string(e.Kind), e.Verdict, e.Code, strings.Replace(e.What, e.Digest, "D", min(1, len(e.Digest)))}, " "))
			}
		}
		return len(got) >= 4
	})
	slices.Sort(got)
	want := []string{"admin allow  7/name:x reviews=1", "admin deny invalid 7/name:x reviews=none", "admin deny invalid sha256:D", "admin deny not-found 7/name:x reset pages"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A user sees what is about its own runs, whatever it asks for; root sees all.
func TestAuditViews(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	s := r.d.shared
	for uid := uint32(1000); uid < 1003; uid++ {
		_, err := s.log.Append(audit.Entry{Kind: audit.KindDecision, Owner: uid, Namespace: "acme"})
		must(t, err)
	}
	query := func(peer caller, p api.AuditQueryParams) (owners []uint32, err error) {
		_, _, err = s.auditQuery(&service.Call{Context: &request{Context: within(t), peer: peer, note: func(_ string, params any) error {
			var e audit.Entry
			must(t, json.Unmarshal(params.(api.AuditRecordNote).Record, &e))
			owners = append(owners, e.Owner)
			return nil
		}}}, p)
		return owners, err
	}
	other := uint32(1001)
	for name, row := range map[string]struct {
		peer caller
		p    api.AuditQueryParams
		want []uint32
		code api.Code
	}{
		"root":                {rootCaller, api.AuditQueryParams{Kind: "decision"}, []uint32{1000, 1001, 1002}, passes},
		"root, of one":        {rootCaller, api.AuditQueryParams{Owner: &other}, []uint32{1001}, passes},
		"a user":              {ownerCaller, api.AuditQueryParams{}, []uint32{1000}, passes},
		"by namespace":        {ownerCaller, api.AuditQueryParams{Namespace: "acme"}, []uint32{1000}, passes},
		"by text":             {ownerCaller, api.AuditQueryParams{Text: `"owner":1002`}, nil, passes},
		"the last":            {ownerCaller, api.AuditQueryParams{Last: 10}, []uint32{1000}, passes},
		"another's":           {ownerCaller, api.AuditQueryParams{Owner: &other}, nil, api.CodeDenied},
		"more than is held":   {rootCaller, api.AuditQueryParams{Last: auditLast + 1}, nil, api.CodeParams},
		"fewer than none":     {rootCaller, api.AuditQueryParams{Last: -1}, nil, api.CodeParams},
		"behind the last one": {rootCaller, api.AuditQueryParams{After: 1 << 40}, nil, passes},
	} {
		owners, err := query(row.peer, row.p)
		if row.code != passes {
			wantCode(t, err, row.code)
		} else if err != nil || !slices.Equal(owners, row.want) {
			t.Errorf("%s: %v, %v", name, owners, err)
		}
	}
}

// A query that follows gets what is there, and then what comes, once each.
func TestAuditFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	var got []string
	_, err := r.d.shared.log.Append(audit.Entry{Kind: audit.KindDecision, What: "0"})
	must(t, err)
	_, err = client.Each(ctx, c, methods.AuditQuery, api.AuditQueryParams{Kind: "decision", Follow: true}, func(n api.AuditRecordNote) error {
		var e audit.Entry
		must(t, json.Unmarshal(n.Record, &e))
		if got = append(got, e.What); len(got) == 3 {
			stop()
			return nil
		}
		_, err := r.d.shared.log.Append(audit.Entry{Kind: audit.KindDecision, What: string('0' + rune(len(got)))})
		return err
	})
	if err == nil || !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// attached is a run of which the agent can call.
func (r *rig) attached(c *client.Client, run agent.Run) *agentSide {
	r.t.Helper()
	must(r.t, client.NewShare(c).Attach(within(r.t), run, func(api.Standing) {}))
	return r.agent(c, run.Spec.ID)
}

// An agent's calls are counted by their result, its events are stored with the id of the
// call, and the log and the sockets have gauges.
func TestWhatAgentsCallIsSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	run := r.add("own", agent.Owner{}, agent.StateRunning)
	s := r.attached(c, run)
	_, err := s.call(agents.GrantCheck.Name, json.RawMessage(`{"what":"tool:fetch"}`))
	must(t, err)
	_, err = s.call(agents.BudgetCharge.Name, json.RawMessage(`{"amounts":{"cpu_ms":1}}`))
	wantCode(t, err, api.CodeDenied)
	r.counted(`clove_kernel_calls_total{caller="agent",code="ok",method="grant.check"} 1`, `clove_kernel_calls_total{caller="agent",code="denied",method="budget.charge"} 1`,
		`clove_kernel_call_seconds_count{caller="agent"} 2`, `clove_kernel_refusals_total{rule="counted"} 1`, `clove_kernel_refusals_total{rule="grant"} 0`, "clove_audit_waiting 0", "clove_audit_queued 0", `clove_budget_marks_total{mark="budget-warned"} 0`)
	var refused agent.RunEvent
	eventually(t, "the refusal is an event", func() bool {
		zero := uint64(0)
		_, err := client.Each(within(t), c, methods.EventFollow, api.EventParams{After: &zero, What: []agent.RunEventKind{agent.RunRefused}}, func(n api.EventNote) error {
			if n.Event != nil {
				refused = *n.Event
			}
			return nil
		})
		must(t, err)
		return refused.Sequence > 0
	})
	if refused.ID != run.Spec.ID || refused.Name != "own" || refused.State != agent.StateRunning || refused.Correlation == "" || !strings.Contains(refused.Detail, "budget.charge: cpu_ms=1") {
		t.Errorf("%+v", refused)
	}
	found := 0
	for _, e := range recorded(t, c, api.AuditQueryParams{Verdict: "deny"}) {
		if e.Correlation == refused.Correlation && e.Method == agents.BudgetCharge.Name {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d records of %s", found, refused.Correlation)
	}
}

// Each call of an agent is a span in the trace of its run, with the id that its record has.
// A message that a supervisor sends for it has no span.
func TestTracesAnAgentsCall(t *testing.T) {
	collector := tracetest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, err := traces.FromEnvironment(context.Background(), "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	must(t, err)
	r := newRig(t, nil)
	r.d.tracer, r.d.reconciler.tracer = tracer, tracer
	c := r.serve()
	started := spec("traced")
	_, err = client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: started, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	must(t, err)
	found, err := client.Do(within(t), c, methods.RunGet, api.RunParams{Run: "traced"})
	must(t, err)
	s := r.attached(c, found.Run)
	_, err = s.call(agents.BudgetCharge.Name, json.RawMessage(`{"amounts":{"cpu_ms":1}}`))
	wantCode(t, err, api.CodeDenied)
	_, err = s.call("made.up.planted", nil)
	wantCode(t, err, api.CodeMethod)
	must(t, tracer.Close(context.Background()))
	spans, _ := collector.Now()
	span := tracetest.Find(spans, "agent."+agents.BudgetCharge.Name)
	if span == nil || !bytes.HasPrefix(span.TraceId, []byte{0x0a, 0xf7}) || tracetest.Text(span, "clove.run.name") != "traced" || tracetest.Text(span, "clove.code") != "denied" {
		t.Fatalf("%v", span)
	}
	var denied []audit.Entry
	eventually(t, "it is recorded", func() bool {
		denied = recorded(t, c, api.AuditQueryParams{Verdict: "deny", Text: agents.BudgetCharge.Name})
		return len(denied) == 1
	})
	if denied[0].Correlation != tracetest.Text(span, "clove.correlation") {
		t.Errorf("%+v", denied)
	}
	if tracetest.Find(spans, "agent.unknown") == nil || tracetest.Find(spans, methods.KernelCall.Name) != nil {
		t.Error("the spans are others")
	}
	if raw, _ := collector.Raw(); bytes.Contains(raw, []byte("planted")) {
		t.Errorf("it sends what an agent wrote: %q", raw)
	}
}
