package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/service"
	"clove.run/clove/tools"
)

// place runs tools as the test says.
type place func(ctx context.Context, order tools.Order, out tools.Output) (int, error)

func (p place) Inside(ctx context.Context, _ agent.Run, e agent.Exec, stdin []byte, out tools.Output) (int, error) {
	var o tools.Order
	if err := json.Unmarshal(stdin, &o); err != nil {
		return 0, err
	}
	if !slices.Equal(e.Command, []string{tools.Program}) || !e.KillRest {
		return 0, fmt.Errorf("%+v", e)
	}
	return p(ctx, o, out)
}

// says is a place where each tool gives a text and ends with a status.
func says(text, reason string, status int) place {
	return func(_ context.Context, _ tools.Order, out tools.Output) (int, error) {
		_, err := io.WriteString(out.Stdout, text)
		_, rerr := io.WriteString(out.Stderr, reason)
		return status, errors.Join(err, rerr)
	}
}

// newToolRig is a rig in which tools run at a place.
func newToolRig(t *testing.T, at place, has agent.Kernel) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), run: newRun(1000, has), manifests: &sync.Map{}, runs: &sync.Map{}, tools: at}
	r.clock.Store(1_800_000_000)
	r.open()
	r.attach(true)
	return r
}

// tool calls a tool as the agent.
func (r *rig) tool(name, arguments string) (result api.ToolCallResult, err error) {
	text, err := r.asAgent(agents.ToolCall.Name, api.ToolCallParams{Tool: name, Arguments: json.RawMessage(arguments)})
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result, err
}

// listed are the names of the tools that the agent may call.
func (r *rig) mayCall() (names []string) {
	r.t.Helper()
	for after := ""; ; {
		var part api.ToolListResult
		text, err := r.asAgent(agents.ToolList.Name, api.ToolListParams{After: after})
		must(r.t, err)
		must(r.t, json.Unmarshal(text, &part))
		for _, t := range part.Tools {
			names = append(names, t.Name)
		}
		if after = part.Next; after == "" {
			return names
		}
	}
}

// aTool is one that a user adds.
func aTool(name string) tools.Definition {
	return tools.Definition{Tool: tools.Tool{Name: name, Description: "a tool of a test", Arguments: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
		Kind: tools.KindCommand, Place: tools.PlaceAgent, Command: []string{"wc", "{path}"}}
}

func TestAnAgentSeesTheToolsThatItMayCall(t *testing.T) {
	t.Parallel()
	r := newToolRig(t, says("", "", 0), agent.Kernel{Grants: []string{"tool:e*", "tool:own", "tool:git"}})
	_, err := r.asUser(1000, methods.ToolAdd.Name, api.ToolAddParams{Tool: aTool("own")})
	must(t, err)
	_, err = r.asUser(1001, methods.ToolAdd.Name, api.ToolAddParams{Tool: aTool("e-of-another")})
	must(t, err)
	if names := r.mayCall(); !slices.Equal(names, []string{"echo", "edit", "git", "own"}) { // exec must be named
		t.Error(names)
	}
	for _, name := range []string{"exec", "read", "e-of-another", "none"} {
		_, err := r.tool(name, `{}`)
		if e := api.ErrorOf(err); err == nil || e.Code != api.CodeDenied && e.Code != api.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all := newToolRig(t, says("", "", 0), agent.Kernel{Grants: []string{"tool:*", "tool:exec", "tool:fetch", "tool:git"}}).mayCall(); len(all) != len(tools.Builtins()) { // the control
		t.Error(all)
	}
	if _, err := r.asUser(1000, methods.ToolRemove.Name, api.ToolNameParams{Tool: "own"}); err != nil || slices.Contains(r.mayCall(), "own") {
		t.Error(err, r.mayCall())
	}
}

// A call with a key is made once at most, also by a client that repeats it behind a crash.
func TestAKeyedCallIsMadeOnce(t *testing.T) {
	t.Parallel()
	made := 0
	r := newToolRig(t, func(context.Context, tools.Order, tools.Output) (int, error) { made++; return 0, nil }, agent.Kernel{Grants: []string{"tool:echo"}})
	call := func(key, arguments string) error {
		_, err := r.asAgent(agents.ToolCall.Name, api.ToolCallParams{Tool: "echo", Arguments: json.RawMessage(arguments), Keyed: api.Keyed{Key: key}})
		return err
	}
	must(t, call("one", `{}`))
	for range 2 {
		if err := call("one", `{}`); api.ErrorOf(err).Code != api.CodeConflict || !strings.Contains(err.Error(), "has begun before") {
			t.Error(err)
		}
		if err := call("one", `{"text":"b"}`); api.ErrorOf(err).Code != api.CodeConflict || !strings.Contains(err.Error(), "another call") {
			t.Error(err)
		}
		r.close()
		r.open()
		r.attach(false)
	}
	must(t, call("", `{}`))
	must(t, call("", `{}`)) // the control
	must(t, call("two", `{}`))
	if made != 4 {
		t.Errorf("%d calls were made", made)
	}
}

// A user's tools are more than one answer has.
func TestManyTools(t *testing.T) {
	t.Parallel()
	r := newToolRig(t, says("", "", 0), agent.Kernel{Grants: []string{"tool:t*"}})
	for i := range 40 {
		d := aTool(fmt.Sprintf("t%02d", i))
		d.Description = strings.Repeat("x", 3000)
		_, err := r.asUser(1000, methods.ToolAdd.Name, api.ToolAddParams{Tool: d})
		must(t, err)
	}
	if names := r.mayCall(); len(names) != 40 || !slices.IsSorted(names) {
		t.Error(len(names), names)
	}
}

func TestACallIsReservedAndSettled(t *testing.T) {
	t.Parallel()
	var seen int64
	var r *rig
	r = newToolRig(t, func(_ context.Context, o tools.Order, out tools.Output) (int, error) {
		seen = r.line("tool_calls").Reserved
		_, err := fmt.Fprintf(out.Stdout, "%s %s", o.Tool, o.Arguments)
		return 0, err
	}, agent.Kernel{Grants: []string{"tool:echo"}, Budgets: []string{"tool_calls=3"}, AtEnd: "refuse"})
	for i := range 3 {
		result, err := r.tool("echo", `{"text":"a"}`)
		if err != nil || result.Text != `echo {"text":"a"}` || result.Failed || result.Call == "" || seen == 0 {
			t.Fatalf("%d: %+v, %v; %d were reserved", i, result, err, seen)
		}
	}
	if own := r.line("tool_calls"); own.Used != 3 || own.Reserved != 0 {
		t.Errorf("%+v", own)
	}
	if _, err := r.tool("echo", `{}`); api.ErrorOf(err).Code != api.CodeBudget {
		t.Error(err)
	}
	var calls, settled int
	for _, e := range r.entries() {
		switch {
		case e.Method == agents.ToolCall.Name && e.What == "tool:echo" && e.Verdict == audit.VerdictAllow:
			calls++
		case e.Method == "tool.settle":
			settled++
		}
	}
	if calls != 3 || settled != 3 {
		t.Errorf("the log has %d calls and %d settlements", calls, settled)
	}
}

// Uses of a grant are counted.
func TestUsesOfATool(t *testing.T) {
	t.Parallel()
	r := newToolRig(t, says("done", "", 0), agent.Kernel{})
	uses := int64(2)
	_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{RunParams: api.RunParams{Run: string(r.run.Spec.ID)}, Grant: "tool:echo", Uses: &uses})
	must(t, err)
	for i := range 3 {
		if _, err := r.tool("echo", `{}`); (err == nil) != (i < 2) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestHowACallEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		at         place
		text, says string
		failed     bool
		code       api.Code
		used       int64
		ms         int64 // the call's time limit
	}{
		"done":             {at: says("a", "ignored", 0), text: "a", used: 1},
		"failed":           {at: says("part", " no such file\n", tools.ExitFailed), text: "part", says: "no such file", failed: true, used: 1},
		"silent":           {at: says("", "", 1), says: "it ended with status 1", failed: true, used: 1},
		"a foreign status": {at: says("", "", 77), says: "it ended with status 77", failed: true, used: 1},
		"over its time": {at: func(ctx context.Context, _ tools.Order, _ tools.Output) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, says: "it was ended at its time limit of 20ms", failed: true, used: 1, ms: 20},
		"no place in a sandbox": {at: refuses(0, fs.ErrNotExist), code: api.CodeUnenforceable},
		"the run is gone":       {at: refuses(0, api.Failure(api.CodeConflict, "", "gone")), code: api.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newToolRig(t, row.at, agent.Kernel{Grants: []string{"tool:echo"}, Budgets: []string{"tool_calls=10"}})
			text, err := r.asAgent(agents.ToolCall.Name, api.ToolCallParams{Tool: "echo", TimeoutMS: row.ms})
			var result api.ToolCallResult
			if err == nil {
				must(t, json.Unmarshal(text, &result))
			}
			if row.code != 0 {
				if err == nil || api.ErrorOf(err).Code != row.code {
					t.Error(err)
				}
			} else if err != nil || result.Text != row.text || result.Error != row.says || result.Failed != row.failed {
				t.Errorf("%+v, %v", result, err)
			}
			if own := r.line("tool_calls"); own.Used != row.used {
				t.Errorf("%d were used", own.Used)
			}
		})
	}
}

func refuses(status int, err error) place {
	return func(context.Context, tools.Order, tools.Output) (int, error) { return status, err }
}

// A result of any size takes no more than its bound, and is valid JSON and UTF-8.
func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"a", "\x00", "\xff", "é", "\"\n", "</script>"} {
		text := strings.Repeat(piece, 4<<20/len(piece))
		r := newToolRig(t, says(text, text, 1), agent.Kernel{Grants: []string{"tool:echo"}})
		result, err := r.tool("echo", `{}`)
		must(t, err)
		line, err := json.Marshal(result.Text)
		if err != nil || len(line) > tools.MaxText+2 || len(result.Error) > 3*tools.MaxError || result.Left < int64(len(text))/2 {
			t.Errorf("%q: %d bytes, %d bytes of an error, %d left out: %v", piece, len(line), len(result.Error), result.Left, err)
		}
	}
}

// A call ends with its caller, and so many are at work at once.
func TestCallsThatLast(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 64)
	r := newToolRig(t, func(ctx context.Context, _ tools.Order, _ tools.Output) (int, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}, agent.Kernel{Grants: []string{"tool:echo"}, Budgets: []string{"tool_calls=100"}})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			_, err := r.Call(ctx, service.Caller{Run: r.run, Agent: true, UID: r.run.Owner.UID}, service.Request{Method: agents.ToolCall.Name, Text: encode(api.ToolCallParams{Tool: "echo"})})
			if err == nil {
				t.Error("a call that was cancelled has a result")
			}
		})
	}
	for range 16 {
		awaited(t, begun)
	}
	if _, err := r.tool("echo", `{}`); api.ErrorOf(err).Code != api.CodeBusy {
		t.Error(err)
	}
	cancel()
	all.Wait()
	if own := r.line("tool_calls"); own.Reserved > 0 || own.Used > 0 {
		t.Errorf("%+v", own)
	}
}

// awaited waits for a value, or a close.
func awaited(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
}

// An agent that calls without end has root enter its sandbox at a pace. The control: another run does not wait.
func TestCallsHaveAPace(t *testing.T) {
	t.Parallel()
	r := newToolRig(t, says("", "", 0), agent.Kernel{Grants: []string{"tool:echo"}})
	began := time.Now()
	for range 75 {
		_, err := r.tool("echo", `{}`)
		must(t, err)
	}
	if took := time.Since(began); took < time.Second/2 { // 50 at once, then 25 in a second
		t.Errorf("75 calls took %v", took)
	}
	other := r.as(newRun(1000, agent.Kernel{Grants: []string{"tool:echo"}}))
	began = time.Now()
	_, err := other.tool("echo", `{}`)
	if must(t, err); time.Since(began) > time.Second/2 {
		t.Errorf("another run waits for %v", time.Since(began))
	}
}

func TestToolsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	r := newToolRig(t, says("", "", 0), agent.Kernel{})
	add := func(change func(*tools.Definition)) error {
		d := aTool("new")
		change(&d)
		_, err := r.asUser(1000, methods.ToolAdd.Name, api.ToolAddParams{Tool: d})
		return err
	}
	for name, change := range map[string]func(*tools.Definition){
		"no name":               func(d *tools.Definition) { d.Name = "" },
		"a dot":                 func(d *tools.Definition) { d.Name = "a.b" },
		"a built-in one's":      func(d *tools.Definition) { d.Name = "read" },
		"clove's":               func(d *tools.Definition) { d.Name = "clove_mail_send" },
		"no description":        func(d *tools.Definition) { d.Description = " " },
		"a long description":    func(d *tools.Definition) { d.Description = strings.Repeat("a", 1<<16) },
		"no command":            func(d *tools.Definition) { d.Command = nil },
		"an unknown argument":   func(d *tools.Definition) { d.Command = []string{"wc", "{file}"} },
		"a program of the call": func(d *tools.Definition) { d.Command = []string{"{path}"} },
		"no schema":             func(d *tools.Definition) { d.Arguments = json.RawMessage(`"x"`) },
		"a list":                func(d *tools.Definition) { d.Arguments = json.RawMessage(`{"type":"array"}`) },
		"a built-in":            func(d *tools.Definition) { d.Kind = tools.KindBuiltin },
		"another place":         func(d *tools.Definition) { d.Place = "elsewhere" },
		"a day":                 func(d *tools.Definition) { d.Timeout = 24 * time.Hour },
		"clove's own dimension": func(d *tools.Definition) { d.Costs = map[string]int64{"tokens_in": 1} },
		"nothing of a budget":   func(d *tools.Definition) { d.Costs = map[string]int64{"reads": 0} },
	} {
		if err := add(change); err == nil || api.ErrorOf(err).Code != api.CodeParams {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, add(func(*tools.Definition) {})) // the control
	if err := add(func(*tools.Definition) {}); api.ErrorOf(err).Code != api.CodeConflict {
		t.Error(err)
	}
}
