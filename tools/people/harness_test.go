package people

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// patience bounds every wait of a test, also on a loaded machine.
const patience = time.Minute

// fakeCloved is a cloved whose processes and changes a test decides. It notes what was asked for.
type fakeCloved struct {
	exec    func(ctx context.Context, p api.ExecParams, input []byte, each func(api.SessionOutput) error) (api.ExecResult, error)
	changes []agent.Change

	mu      sync.Mutex // guards the following
	started []agent.Spec
	removed []string
	killed  []string
	applied []api.ApplyParams
	ends    map[string]chan end // of each run
}

// end is how a run ends, behind this output.
type end struct {
	record agent.Record
	output string
}

func (f *fakeCloved) Call(_ context.Context, method string, params, _ any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch p := params.(type) {
	case api.StartParams:
		f.started = append(f.started, p.Spec)
		f.ends[string(p.Spec.ID)] = make(chan end, 1)
		return nil
	case api.RemoveParams:
		f.removed = append(f.removed, p.Run)
		f.finish(p.Run, agent.Record{Status: agent.StatusKilled, ExitCode: agent.ExitKilled})
		return nil
	case api.SignalParams:
		f.killed = append(f.killed, p.Run)
		f.finish(p.Run, agent.Record{Status: agent.StatusKilled, ExitCode: agent.ExitKilled})
		return nil
	}
	return api.Failure(api.CodeMethod, "", "the fake has no %s", method)
}

// finish ends a run that has no end yet.
func (f *fakeCloved) finish(run string, record agent.Record) {
	select {
	case f.ends[run] <- end{record: record}:
	default:
	}
}

func (f *fakeCloved) Stream(_ context.Context, method string, params, result any, note func(string, json.RawMessage) error) error {
	changes := slices.Clone(f.changes)
	if p, is := params.(api.ApplyParams); is {
		f.applied = append(f.applied, p)
		for i := range changes {
			if changes[i].ExecutedBy != "" {
				changes[i].Refused = "it was not allowed"
			}
		}
	}
	for _, c := range changes {
		text, err := json.Marshal(api.ChangeNote{Change: c})
		if err != nil {
			return err
		}
		if err := note(method, text); err != nil {
			return err
		}
	}
	if r, is := result.(*api.DiffResult); is {
		*r = api.DiffResult{Changes: len(changes), Digest: "sha256:d"}
	}
	return nil
}

func (f *fakeCloved) Exec(ctx context.Context, p api.ExecParams, input []byte, each func(api.SessionOutput) error) (api.ExecResult, error) {
	return f.exec(ctx, p, input, each)
}

func (f *fakeCloved) Hold(ctx context.Context, run string, each func(api.SessionOutput) error) (*agent.Record, error) {
	f.mu.Lock()
	ends := f.ends[run]
	f.mu.Unlock()
	select {
	case e := <-ends:
		if e.output != "" {
			if err := each(api.SessionOutput{Stream: "stdout", Data: []byte(e.output)}); err != nil {
				return nil, err
			}
		}
		return &e.record, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rig is a server over a fake.
type rig struct {
	*Server
	t         *testing.T
	cloved    *fakeCloved
	workspace string
	reported  []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	f := &fakeCloved{ends: map[string]chan end{}, exec: func(context.Context, api.ExecParams, []byte, func(api.SessionOutput) error) (api.ExecResult, error) {
		return api.ExecResult{}, nil
	}}
	r := &rig{t: t, cloved: f}
	spec := func() (agent.Spec, error) {
		id := agent.NewID()
		return agent.Spec{ID: id, Name: "mcp-" + string(id[:8]), Network: agent.NetworkNone, Files: agent.Files{Workspace: r.workspace}}, nil
	}
	r.Server = New(Options{Cloved: f, Spec: spec,
		Agents: func() []Agent { return []Agent{{"helper", "helps"}} },
		Agent:  func(string, string) (agent.Spec, error) { return spec() },
		Show: func(changes []agent.Change) (text string) {
			for _, c := range changes {
				text += string(c.Path) + " " + c.Refused + "\n"
			}
			return text
		},
		Ending: func(r agent.Record, _ agent.Limits) []string {
			if r.Status == agent.StatusOOM {
				return []string{"memory limit reached"}
			}
			return nil
		},
		Report: func(line string) { r.reported = append(r.reported, line) }})
	return r
}

// use calls a tool.
func (r *rig) use(tool, arguments string) api.ToolCallResult {
	r.t.Helper()
	params, err := json.Marshal(api.ToolCallParams{Tool: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := r.Handle(r.t.Context(), "tool.call", params)
	if err != nil {
		r.t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	var result api.ToolCallResult
	if err := json.Unmarshal(text, &result); err != nil {
		r.t.Fatal(err)
	}
	if result.Failed != (result.Error != "") {
		r.t.Errorf("%s %s: %+v", tool, arguments, result)
	}
	return result
}

// refused uses a tool, which must fail with this text in its reason.
func (r *rig) refused(tool, arguments, says string) {
	r.t.Helper()
	if got := r.use(tool, arguments); !got.Failed || !strings.Contains(got.Error, says) {
		r.t.Errorf("%s %s: %+v, want %q", tool, arguments, got, says)
	}
}

// endRun ends the n-th run that was started, and waits until the server knows.
func (r *rig) endRun(n int, e end, h *held) {
	r.t.Helper()
	r.cloved.ends[string(r.cloved.started[n].ID)] <- e
	select {
	case <-h.done:
	case <-time.After(patience):
		r.t.Fatal("the end is not noticed")
	}
}

func writing(text string, result api.ExecResult) func(context.Context, api.ExecParams, []byte, func(api.SessionOutput) error) (api.ExecResult, error) {
	return func(_ context.Context, _ api.ExecParams, _ []byte, each func(api.SessionOutput) error) (api.ExecResult, error) {
		return result, each(api.SessionOutput{Stream: "stdout", Data: []byte(text)})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// only is the sandbox of a server without handles.
func (r *rig) only() *sandbox { return r.sandboxes[""] }
