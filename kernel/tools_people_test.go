package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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

// askedRig is a rig whose tools may be called when people say yes. ran counts the calls that ran.
type askedRig struct {
	*rig
	ran atomic.Int64
}

func newAskedRig(t *testing.T, has agent.Kernel) *askedRig {
	t.Helper()
	a := &askedRig{}
	has.Asks = append(has.Asks, agent.AskTool)
	a.rig = newToolRig(t, func(_ context.Context, o tools.Order, out tools.Output) (int, error) {
		a.ran.Add(1)
		_, err := fmt.Fprintf(out.Stdout, "%s", o.Arguments)
		return 0, err
	}, has)
	return a
}

// calling begins a call of the agent's, and returns its end.
func (a *askedRig) calling(ctx context.Context, name, arguments string) <-chan error {
	return a.callingAs(ctx, service.Caller{Run: a.run, Agent: true, UID: a.run.Owner.UID}, name, arguments)
}

func (a *askedRig) callingAs(ctx context.Context, as service.Caller, name, arguments string) <-chan error {
	ended := make(chan error, 1)
	k := a.Kernel
	go func() {
		_, err := k.Call(ctx, as, service.Request{Method: agents.ToolCall.Name, Text: encode(api.ToolCallParams{Tool: name, Arguments: json.RawMessage(arguments)})})
		ended <- err
	}()
	return ended
}

// all are the run's questions in a state.
func (a *askedRig) all(state api.ApprovalState) []api.Approval {
	a.t.Helper()
	list, err := asks[api.ApprovalListResult](a.rig, 1000, methods.ApprovalList.Name, api.ApprovalListParams{State: state})
	must(a.t, err)
	return list.Approvals
}

// waits waits for the only question that waits.
func (a *askedRig) waits() api.Approval {
	a.t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		if all := a.all(api.ApprovalWaits); len(all) == 1 {
			return all[0]
		}
	}
	a.t.Fatal("nothing is asked")
	return api.Approval{}
}

// once allows a question for one time.
func once(q api.Approval) api.ApprovalRespondParams {
	p := yes(q)
	p.Once = true
	return p
}

func (a *askedRig) ended(c <-chan error) error {
	a.t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		a.t.Fatal("the call has not ended")
		return nil
	}
}

// unasked is a call that ends without a new question.
func (a *askedRig) unasked(name, arguments string) error {
	a.t.Helper()
	before := len(a.all(""))
	err := a.ended(a.calling(a.t.Context(), name, arguments))
	if after := len(a.all("")); after != before {
		a.t.Errorf("%s %s was asked about", name, arguments)
	}
	return err
}

const writing = `{"path":"/a","content":"b"}`

// A call of a tool that may change something waits for people, who see all of it. A yes for one time is used up with the call, another
// holds for these arguments to the end of the run, and other arguments are another question. The controls are a tool that changes nothing
// and a run without --ask tool: they are not asked about.
func TestPeopleAreAskedAboutCalls(t *testing.T) {
	t.Parallel()
	a := newAskedRig(t, agent.Kernel{Grants: []string{"tool:*"}})
	standings := a.attach(false)
	must(t, a.unasked("read", `{"path":"/a"}`))
	call := a.calling(t.Context(), "write", " { \"path\": \"/a\", \"content\": \"b\" } ")
	q := a.waits()
	if q.Kind != api.ApproveTool || q.What != "call the tool write" || !slices.Equal(q.Shown, []string{"arguments: " + writing}) || q.Agent != "worker" || q.Run != a.run.Spec.ID || a.ran.Load() != 1 {
		t.Fatalf("%+v, and %d calls ran", q, a.ran.Load())
	}
	for shown := false; !shown; { // the run's supervisor shows it
		select {
		case now := <-standings:
			shown = slices.Contains(now.Asking, q.ID)
		case <-time.After(patience):
			t.Fatal("the supervisor does not get the question")
		}
	}
	_, err := a.responds(1000, once(q))
	must(t, err)
	must(t, a.ended(call))
	call = a.calling(t.Context(), "write", writing)
	second := a.waits()
	_, err = a.responds(1000, yes(second))
	must(t, err)
	must(t, a.ended(call))
	if a.ran.Load() != 3 || second.ID == q.ID {
		t.Errorf("%d ran, by %s and %s", a.ran.Load(), q.ID, second.ID)
	}
	must(t, a.unasked("write", writing))
	call = a.calling(t.Context(), "write", `{"path":"/b","content":"b"}`)
	_, err = a.responds(1000, api.ApprovalRespondParams{ID: a.waits().ID, Digest: a.waits().Digest, Reason: "not b"})
	must(t, err)
	err = a.ended(call)
	if refusedBy(t, err, api.CodeDenied, "what people refused"); !strings.Contains(err.Error(), "people refused it: not b") || api.ErrorOf(err).Data.Step != service.StageApproval {
		t.Errorf("%+v", err)
	}
	refusedBy(t, a.unasked("write", `{"path":"/b","content":"b"}`), api.CodeDenied, "the same again")
	if a.ran.Load() != 4 {
		t.Errorf("%d ran", a.ran.Load())
	}
	control := newToolRig(t, says("", "", 0), agent.Kernel{Grants: []string{"tool:*"}})
	_, err = control.tool("write", writing)
	must(t, err)
	var log []string
	for _, e := range a.entries() {
		if e.Method == agents.ToolCall.Name || strings.HasPrefix(e.Method, "approval.") {
			log = append(log, strings.TrimSpace(e.Method+" "+e.Verdict+" "+e.What))
		}
	}
	allow, write := " "+audit.VerdictAllow+" ", "call the tool write"
	reads, writes, ask, respond := "tool.call"+allow+"tool:read", "tool.call"+allow+"tool:write", "approval.ask"+allow+write, "approval.respond"+allow+write
	denied := "tool.call " + audit.VerdictDeny + " tool:write"
	if want := []string{reads, ask, respond, writes, ask, respond, writes, writes, ask, respond, denied, denied}; !slices.Equal(slices.Sorted(slices.Values(log)), slices.Sorted(slices.Values(want))) {
		t.Errorf("the log has %q", log)
	}
}

// A tool of the user's that says nothing about what it changes is asked about, with the command that runs; so is a call of the user's own.
// Where the user makes it another tool, the yes holds no more. The control says that it changes nothing.
func TestPeopleAreAskedAboutOwnTools(t *testing.T) {
	t.Parallel()
	a := newAskedRig(t, agent.Kernel{Grants: []string{"tool:*"}})
	add := func(d tools.Definition) {
		_, err := a.asUser(1000, methods.ToolAdd.Name, api.ToolAddParams{Tool: d})
		must(t, err)
	}
	add(aTool("own"))
	harmless, changes := aTool("harmless"), false
	is := true
	harmless.Annotations = tools.Annotations{ReadOnly: &is, Destructive: &changes}
	add(harmless)
	must(t, a.unasked("harmless", `{"path":"/a"}`))
	call := a.callingAs(t.Context(), service.Caller{Run: a.run, UID: 1000}, "own", `{"path":"/a"}`)
	q := a.waits()
	if !slices.Equal(q.Shown, []string{`command: ["wc","{path}"]`, `arguments: {"path":"/a"}`}) {
		t.Errorf("%+v", q)
	}
	_, err := a.responds(1000, yes(q))
	must(t, err)
	must(t, a.ended(call))
	must(t, a.unasked("own", `{"path":"/a"}`))
	_, err = a.asUser(1000, methods.ToolRemove.Name, api.ToolNameParams{Tool: "own"})
	must(t, err)
	other := aTool("own")
	other.Command = []string{"rm", "{path}"}
	add(other)
	call = a.calling(t.Context(), "own", `{"path":"/a"}`)
	_, err = a.responds(1000, api.ApprovalRespondParams{ID: a.waits().ID, Digest: a.waits().Digest})
	must(t, err)
	refusedBy(t, a.ended(call), api.CodeDenied, "another command")
}

// What would be refused after a yes is refused without a question: no grant, no budget, arguments of which people would not see all. After
// the yes all is checked again.
func TestWhatIsRefusedWithoutAQuestion(t *testing.T) {
	t.Parallel()
	a := newAskedRig(t, agent.Kernel{Grants: []string{"tool:write"}, Budgets: []string{"tool_calls=1"}, AtEnd: "refuse"})
	refusedBy(t, a.unasked("edit", `{}`), api.CodeDenied, "a call without a grant")
	err := a.unasked("write", `{"path":"/a","content":"`+strings.Repeat("x", 9000)+`"}`)
	if refusedBy(t, err, api.CodeParams, "what people do not see"); api.ErrorOf(err).Data.Hint == "" {
		t.Errorf("%+v", err)
	}
	call := a.calling(t.Context(), "write", writing)
	q := a.waits()
	held := answerOf[api.GrantListResult](t)(a.asUser(1000, agents.GrantList.Name, api.GrantListParams{}))
	_, err = a.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: held.Grants[0].ID})
	must(t, err)
	_, err = a.responds(1000, yes(q))
	must(t, err)
	refusedBy(t, a.ended(call), api.CodeDenied, "a grant that was revoked meanwhile")
	_, err = a.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:write"})
	must(t, err)
	must(t, a.unasked("write", writing)) // the control: what was reserved for the others is free
	refusedBy(t, a.unasked("write", `{"path":"/b"}`), api.CodeBudget, "a call that no budget has")
	if a.ran.Load() != 1 {
		t.Errorf("%d ran", a.ran.Load())
	}
}

// Equal calls wait for one question, and a yes for one time is for one of them. When the last caller goes, the question is taken back.
func TestACallerThatGoesTakesItsQuestion(t *testing.T) {
	t.Parallel()
	a := newAskedRig(t, agent.Kernel{Grants: []string{"tool:write"}})
	both, leave := context.WithCancel(t.Context())
	defer leave()
	first, second := a.calling(both, "write", writing), a.calling(both, "write", writing)
	q := a.waits()
	_, err := a.responds(1000, once(q))
	must(t, err)
	var left <-chan error
	select {
	case err = <-first:
		left = second
	case err = <-second:
		left = first
	}
	must(t, err)
	again := a.waits()
	third, goes := context.WithCancel(t.Context())
	joined := a.calling(third, "write", writing)
	time.Sleep(50 * time.Millisecond) // it joins, or is early and asks the same
	goes()
	refusedBy(t, a.ended(joined), api.CodeCancelled, "the call of a client that has gone")
	if now := a.waits(); now.ID != again.ID || a.ran.Load() != 1 {
		t.Errorf("%+v, and %d ran", now, a.ran.Load())
	}
	leave()
	refusedBy(t, a.ended(left), api.CodeCancelled, "the last one")
	if all := a.all(api.ApprovalWaits); len(all) != 0 || len(a.all(api.ApprovalGone)) != 1 {
		t.Errorf("%+v", all)
	}
	call := a.calling(t.Context(), "write", writing) // the control: what was taken back is no refusal
	_, err = a.responds(1000, yes(a.waits()))
	must(t, err)
	must(t, a.ended(call))
}

// A call waits for the run's ask hold, or for the life of the question, and the agent may take its question back.
func TestACallThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	a := newAskedRig(t, agent.Kernel{Grants: []string{"tool:write"}, AskHold: time.Second})
	refusedBy(t, a.ended(a.calling(t.Context(), "write", writing)), api.CodeBusy, "a call that was held for its time")
	q := a.waits()
	call := a.calling(t.Context(), "write", writing)
	_, err := a.responds(1000, once(q))
	must(t, err)
	must(t, a.ended(call)) // the same question
	a = newAskedRig(t, agent.Kernel{Grants: []string{"tool:write"}})
	call = a.calling(t.Context(), "write", writing)
	_, err = a.asAgent(agents.ApprovalCancel.Name, api.ApprovalCancelParams{ID: a.waits().ID})
	must(t, err)
	if err := a.ended(call); api.ErrorOf(err).Code != api.CodeDenied || !strings.Contains(err.Error(), "taken back") {
		t.Error(err)
	}
	call = a.calling(t.Context(), "write", writing)
	a.waits()
	a.clock.Add(3601)
	must(t, a.ClockSet())
	a.alarm.set(a.engine.Now())
	if err := a.ended(call); api.ErrorOf(err).Code != api.CodeDenied || !strings.Contains(err.Error(), "there was no answer") {
		t.Error(err)
	}
}

// A question and its answer are there after a restart: the call that is made again runs by the yes, once.
func TestQuestionsAboutCallsSurviveARestart(t *testing.T) {
	t.Parallel()
	a := newAskedRig(t, agent.Kernel{Grants: []string{"tool:write"}})
	call := a.calling(t.Context(), "write", writing)
	q := a.waits()
	a.close()
	refusedBy(t, a.ended(call), api.CodeBusy, "a call while cloved ends")
	a.open()
	a.attach(false)
	if now := a.waits(); now.ID != q.ID || now.Digest != q.Digest {
		t.Fatalf("%+v, then %+v", q, now)
	}
	_, err := a.responds(1000, once(q))
	must(t, err)
	a.close()
	a.open()
	a.attach(false)
	must(t, a.unasked("write", writing))
	call = a.calling(t.Context(), "write", writing)
	if again := a.waits(); again.ID == q.ID || a.ran.Load() != 1 {
		t.Errorf("%+v, and %d ran", again, a.ran.Load())
	}
	_, err = a.responds(1000, api.ApprovalRespondParams{ID: a.waits().ID, Digest: a.waits().Digest})
	must(t, err)
	refusedBy(t, a.ended(call), api.CodeDenied, "what people refused")
}

// Two users must say yes where the run says so, and a supervisor asks nothing of this kind.
func TestTwoPeopleAboutACall(t *testing.T) {
	t.Parallel()
	a := newAskedRig(t, agent.Kernel{Grants: []string{"tool:write"}, Asks: []string{"tool=2"}})
	call := a.calling(t.Context(), "write", writing)
	q := a.waits()
	_, err := a.responds(1000, yes(q))
	must(t, err)
	if a.waits().ID != q.ID || a.ran.Load() != 0 {
		t.Error("one yes was enough")
	}
	_, err = a.responds(2000, yes(q))
	must(t, err)
	must(t, a.ended(call))
	_, err = asks[api.ApprovalResult](a.rig, 0, methods.ApprovalAsk.Name, api.ApprovalAskParams{Run: a.run.Spec.ID, Kind: api.ApproveTool, What: "call the tool write", Rule: "x"})
	refusedBy(t, err, api.CodeParams, "a question that is not the kernel's")
}

// What encoders escape for HTML people see as it is, and what the agent has escaped itself stays.
func TestArgumentsAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	a := newAskedRig(t, agent.Kernel{Grants: []string{"tool:write"}})
	ctx, leave := context.WithCancel(t.Context())
	call := a.calling(ctx, "write", `{"path":"/a\\u003e\u003eb<\u0026","content":"\n\"\u202e"}`)
	if q := a.waits(); !slices.Equal(q.Shown, []string{`arguments: {"path":"/a\\u003e>b<&","content":"\n\"\u202e"}`}) {
		t.Errorf("%q", q.Shown)
	}
	leave()
	refusedBy(t, a.ended(call), api.CodeCancelled, "the call of a client that has gone")
}
