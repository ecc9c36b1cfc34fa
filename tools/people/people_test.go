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
	"clove.run/clove/kernel/channel"
	"clove.run/clove/tools"
)

// Every row can be sent: a name that clients take, a schema of an object, texts within the bounds.
func TestTheTable(t *testing.T) {
	t.Parallel()
	all := newRig(t).list()
	if len(all) != 11 || !slices.IsSortedFunc(all, func(a, b tools.Tool) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d tools, or not by name", len(all))
	}
	for _, one := range all {
		var schema struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
			Additional *bool                      `json:"additionalProperties"`
		}
		if err := json.Unmarshal(one.Arguments, &schema); err != nil || schema.Type != "object" || schema.Additional == nil || *schema.Additional {
			t.Errorf("%s: %v, %s", one.Name, err, one.Arguments)
		}
		for _, name := range schema.Required {
			if schema.Properties[name] == nil {
				t.Errorf("%s: %s is required and no property", one.Name, name)
			}
		}
		if len(one.Arguments) > tools.MaxSchema || len(one.Description) > tools.MaxDescription || one.Description == "" || one.Annotations.ReadOnly == nil {
			t.Errorf("%s: %+v", one.Name, one)
		}
	}
}

// The sandbox is started by the first call that needs it, once, and each call is a session with a time, whose rest ends.
func TestTheSandboxIsStartedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var seen sync.Map
	r.cloved.exec = func(_ context.Context, p api.ExecParams, _ []byte, each func(api.SessionOutput) error) (api.ExecResult, error) {
		seen.Store(p.Run, p.Exec)
		return api.ExecResult{}, each(api.SessionOutput{Data: []byte("42\n")})
	}
	r.use("list_agents", "")
	if len(r.cloved.started) != 0 {
		t.Error("a call that needs no sandbox started one")
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := r.use("run_code", `{"language":"python","code":"print(42)","timeout_seconds":7}`); got.Failed || got.Text != "42\n" {
				t.Errorf("%+v", got)
			}
		})
	}
	all.Wait()
	if len(r.cloved.started) != 1 || !r.cloved.started[0].Foreground || !r.cloved.started[0].Remove {
		t.Fatalf("%+v", r.cloved.started)
	}
	found, _ := seen.Load(string(r.cloved.started[0].ID))
	if e, is := found.(agent.Exec); !is || e.Timeout != 7*time.Second || !e.KillRest || !slices.Equal(e.Command, []string{"python3", "-c", "print(42)"}) {
		t.Errorf("%+v", found)
	}
}

// What does not fit is a result that a model can act on, and nothing is started for it.
func TestArgumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, row := range [][3]string{
		{"run_code", `{"language":"perl","code":"1"}`, "python, node or bash"},
		{"run_code", `{"language":"python","code":"1","timeout_seconds":3601}`, "1 to 3600"},
		{"run_code", `{"language":"python","code":"1","timeout_seconds":-1}`, "1 to 3600"},
		{"run_code", `{"langage":"python"}`, `unknown field "langage"`},
		{"run_code", `[]`, "do not fit"},
		{"run_command", `{}`, "command is empty"},
		{"run_command", `{"command":"` + strings.Repeat("x", tools.MaxArguments) + `"}`, "give less"},
		{"read_file", `{"path":"x","offset":-1}`, "no number below 0"},
		{"write_file", `{"content":"x"}`, "path is empty"},
		{"list_files", `{"depth":17}`, "1 to 16"},
		{"fetch", `{"url":"file:///etc/passwd"}`, "no URL of http"},
		{"fetch", `{"url":"http://u:p@example.com/"}`, "before @"},
		{"spawn_agent", `{"agent":"/etc/agent.yaml"}`, "no agent"},
		{"ask_agent", `{"agent":"nobody"}`, "no agent"},
		{"kill_agent", `{"agent":"web"}`, "this server has started no agent"},
	} {
		r.refused(row[0], row[1], row[2])
	}
	if len(r.cloved.started) != 0 {
		t.Errorf("%+v", r.cloved.started)
	}
	if _, err := r.Handle(t.Context(), "tool.call", json.RawMessage(`{"tool":"nothing"}`)); api.ErrorOf(err).Code != api.CodeNotFound {
		t.Errorf("%v", err)
	}
	if _, err := r.Handle(t.Context(), "run.start", nil); api.ErrorOf(err).Code != api.CodeMethod {
		t.Errorf("%v", err)
	}
}

// The text of a result has its begin and its end, and fits into a packet whatever is in it.
func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"0123456789", "\x01", "<", "\xff", "€"} {
		r := newRig(t)
		whole := "begin" + strings.Repeat(unit, 1<<20/len(unit)) + "end"
		r.cloved.exec = writing(whole, api.ExecResult{})
		params := json.RawMessage(`{"tool":"run_command","arguments":{"command":"x"}}`)
		text, err := r.Handle(t.Context(), "tool.call", params)
		must(t, err)
		encoded, err := json.Marshal(channel.ToGate{Answer: &channel.Answer{Number: 1, Result: text}})
		if err != nil || len(encoded) > channel.MaxMessageBytes {
			t.Errorf("%q: %d bytes, %v", unit, len(encoded), err)
		}
		var got api.ToolCallResult
		must(t, json.Unmarshal(text, &got))
		if len(got.Text) > 3*tools.MaxText || !strings.HasPrefix(got.Text, "begin") || !strings.HasSuffix(got.Text, "end") || got.Left < 900<<10 || !strings.Contains(got.Text, "bytes are left out here") {
			t.Errorf("%q: %d bytes of text, %d left", unit, len(got.Text), got.Left)
		}
	}
	r := newRig(t)
	r.cloved.exec = writing(strings.Repeat("x", 40<<10), api.ExecResult{ExitCode: 3})
	if got := r.use("run_command", `{"command":"x"}`); len(got.Text) != 40<<10 || got.Left != 0 || got.Error != "exit status 3" {
		t.Errorf("control: %d bytes, %d left, %q", len(got.Text), got.Left, got.Error)
	}
}

// The end of a sandbox is said to the call that meets it, and the next one has a new sandbox.
func TestTheEndOfASandboxIsSaidOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.use("run_command", `{"command":"true"}`)
	r.endRun(0, end{record: agent.Record{Status: agent.StatusOOM, ExitCode: 137}}, r.only().held)
	r.refused("run_command", `{"command":"true"}`, "memory limit reached")
	if got := r.use("run_command", `{"command":"true"}`); got.Failed || len(r.cloved.started) != 2 || r.cloved.started[0].ID == r.cloved.started[1].ID {
		t.Errorf("%+v, %d starts", got, len(r.cloved.started))
	}
	// In the middle of a call, whose session ends with it.
	r.cloved.exec = func(context.Context, api.ExecParams, []byte, func(api.SessionOutput) error) (api.ExecResult, error) {
		r.endRun(1, end{record: agent.Record{Status: agent.StatusOOM, ExitCode: 137}}, r.only().held)
		return api.ExecResult{ExitCode: 137}, nil
	}
	r.refused("run_command", `{"command":"true"}`, "memory limit reached")
	r.cloved.exec = writing("", api.ExecResult{})
	if got := r.use("run_command", `{"command":"true"}`); got.Failed || len(r.cloved.started) != 3 {
		t.Errorf("%+v, %d starts", got, len(r.cloved.started))
	}
}

// What the network refuses is told with the result, and what the user could do.
func TestRefusalsAreSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.use("run_command", `{"command":"true"}`)
	must(t, r.only().held.take(api.SessionOutput{Denied: &api.SessionDenied{Denial: agent.Denial{Target: "tcp://api.example.com:443"}, Hint: "--allow api.example.com"}}))
	if got := r.use("run_command", `{"command":"true"}`); !strings.Contains(got.Text, "refused tcp://api.example.com:443 (the user allows it with clove mcp --allow api.example.com)") {
		t.Errorf("%+v", got)
	}
	if got := r.use("run_command", `{"command":"true"}`); got.Text != "" {
		t.Errorf("%+v", got)
	}
	r.refused("fetch", `{"url":"https://example.com/x"}`, "--allow example.com")
}

// Through a channel, as clove-mcp calls: a call that is cancelled ends its process.
func TestACancelledCallEndsItsProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	entered, left := make(chan struct{}), make(chan struct{})
	r.cloved.exec = func(ctx context.Context, _ api.ExecParams, _ []byte, _ func(api.SessionOutput) error) (api.ExecResult, error) {
		close(entered)
		<-ctx.Done()
		close(left)
		return api.ExecResult{}, ctx.Err()
	}
	own, theirs, err := channel.Both()
	must(t, err)
	defer theirs.Close()
	served := make(chan error, 1)
	go func() { served <- own.Serve(t.Context(), r.Handle) }()
	params := json.RawMessage(`{"tool":"run_command","arguments":{"command":"sleep 1000"}}`)
	must(t, theirs.Send(channel.FromGate{Call: &channel.Call{Number: 1, Method: "tool.call", Params: params}}))
	<-entered
	must(t, theirs.Send(channel.FromGate{Cancel: 1}))
	select {
	case <-left:
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	var m channel.ToGate
	must(t, theirs.Receive(&m))
	if m.Answer == nil || m.Answer.Error != nil || !strings.Contains(string(m.Answer.Result), "it was cancelled") && !strings.Contains(string(m.Answer.Result), "the call was cancelled") {
		t.Errorf("%+v", m.Answer)
	}
}

// Files go through processes inside: a path is an argument, and no part of a script.
func TestFilesAreArguments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var got agent.Exec
	var input []byte
	r.cloved.exec = func(_ context.Context, p api.ExecParams, in []byte, _ func(api.SessionOutput) error) (api.ExecResult, error) {
		got, input = p.Exec, in
		return api.ExecResult{}, nil
	}
	const path = `$(id); "x`
	encoded, err := json.Marshal(path)
	must(t, err)
	r.use("write_file", `{"path":`+string(encoded)+`,"content":"hello"}`)
	if !slices.Equal(got.Command, []string{"sh", "-c", writeScript, "sh", path, "replace"}) || string(input) != "hello" {
		t.Errorf("%q, %q", got.Command, input)
	}
	r.use("read_file", `{"path":`+string(encoded)+`,"offset":3}`)
	if !slices.Equal(got.Command, []string{"sh", "-c", readScript, "sh", path, "3", "0"}) {
		t.Errorf("%q", got.Command)
	}
}
