package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/kernel/service"
	"clove.run/clove/tools"
)

// People are asked about calls. *approvals.Approvals is one. what and shown are all that people see.
type People interface {
	// UseTool uses up what people have answered. The error is a conflict where they have not.
	UseTool(c *service.Call, run agent.Run, what string, shown []string) error
	// AskTool asks them, once for equal questions.
	AskTool(c *service.Call, run agent.Run, what string, shown []string) (id string, out service.Outcome, err error)
	// Withdraw takes a question back.
	Withdraw(c *service.Call, run agent.Run, id string) (service.Outcome, error)
}

// Engine is what a call works with that waits for people. *service.Engine is one.
type Engine interface {
	For(caller service.Caller, method, about string, decide func(*service.Call) (service.Outcome, error)) error
	Call(ctx context.Context, c service.Caller, r service.Request) (json.RawMessage, error)
}

// Serve has questions asked and waited for by an engine.
func (t *Tools) Serve(e Engine) { t.engine = e }

// asks reports whether people are asked about calls of a tool by a run. What is not known to change nothing may change something.
func asks(run agent.Run, d tools.Definition) bool {
	is := func(hint *bool) bool { return hint != nil && *hint }
	// What reaches beyond the sandbox can carry out what it has read.
	harmless := is(d.Annotations.ReadOnly) && !is(d.Annotations.OpenWorld)
	return run.Spec.Kernel.People(agent.AskTool) > 0 && !harmless
}

// question is what people are asked about one call.
type question struct {
	what  string
	shown []string
	key   string // of the run and all of this
}

// questionOf shows all of the arguments, as the program gets them, and what a tool of the user's runs.
func questionOf(run agent.Run, d tools.Definition, arguments json.RawMessage) (q question, err error) {
	var all bytes.Buffer
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if err := json.Compact(&all, arguments); err != nil {
		return q, api.Failure(api.CodeParams, "give an object of JSON", "the arguments are no JSON")
	}
	q.what = "call the tool " + d.Name
	if d.Kind != tools.KindBuiltin {
		command, err := json.Marshal(d.Command)
		if err != nil {
			return q, err
		}
		q.shown = append(q.shown, "command: "+string(command))
	}
	q.shown = append(q.shown, "arguments: "+readable(all.String()))
	q.key = strings.Join(append([]string{string(run.Spec.ID), q.what}, q.shown...), "\x00")
	return q, nil
}

// readable has <, > and & of JSON as they are: encoders on the way have escaped them for HTML.
func readable(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		if i+6 <= len(text) {
			if at := slices.Index([]string{`\u003c`, `\u003e`, `\u0026`}, text[i:i+6]); at >= 0 {
				out.WriteByte("<>&"[at])
				i += 5
				continue
			}
		}
		out.WriteString(text[i : i+2]) // an escape of two, which may be of a backslash
		i++
	}
	return out.String()
}

// reserve is Ledger.Reserve. Where people are asked about the call, it waits for their yes, and uses that with the reservation: what
// no grant covers, and what no budget has left, is refused without a question. recorded says that an error needs no entry.
func (t *Tools) reserve(c *service.Call, d tools.Definition, arguments json.RawMessage, s ledger.Spending) (id string, recorded bool, err error) {
	if !asks(c.Run, d) {
		id, err = t.Ledger.Reserve(c.Run, s)
		return id, true, err
	}
	q, err := questionOf(c.Run, d, arguments)
	if err != nil {
		return "", false, err
	}
	unanswered := false
	s.Allow = func(within *service.Call) error {
		err := t.People.UseTool(within, c.Run, q.what, q.shown)
		if unanswered = err != nil && api.ErrorOf(err).Code == api.CodeConflict; unanswered {
			return service.Quiet(err)
		}
		return err
	}
	most := cmp.Or(c.Run.Spec.Kernel.AskHold, agent.AskHold)
	ctx, cancel := context.WithTimeout(c.Context, most)
	defer cancel()
	for {
		unanswered = false
		if id, err = t.Ledger.Reserve(c.Run, s); err == nil || !unanswered {
			return id, true, err
		}
		recorded, err = t.asked(ctx, c, q)
		if err != nil && ctx.Err() != nil && c.Context.Err() == nil {
			err = api.Failure(api.CodeBusy, "call it again: it waits for the same question", "people have not answered within %s", most).By(service.StageApproval, "")
		}
		if err != nil {
			return "", recorded, err
		}
	}
}

// asked asks people, and waits for the answer or for the end of ctx. Where the caller has gone, and no other call waits for the question,
// that is taken back.
func (t *Tools) asked(ctx context.Context, c *service.Call, q question) (recorded bool, err error) {
	t.waits(q, 1)
	waits := true
	leave := func() {
		if waits {
			waits = false
			t.waits(q, -1)
		}
	}
	defer leave()
	id, as := "", service.Caller{Run: c.Run, Agent: c.Agent, UID: c.UID}
	err = t.engine.For(as, methods.ApprovalAsk.Name, q.what, func(within *service.Call) (out service.Outcome, err error) {
		id, out, err = t.People.AskTool(within, c.Run, q.what, q.shown)
		return out, err
	})
	if err != nil {
		return true, err
	}
	state, err := t.answer(ctx, c.Run, id)
	switch {
	case err != nil && c.Context.Err() != nil:
		leave()
		_ = t.engine.For(as, agents.ApprovalCancel.Name, q.what, func(within *service.Call) (out service.Outcome, err error) {
			if t.waits(q, 0) > 0 { // it came before this transaction, so that it has found the question
				return out, service.Quiet(errors.New("another call waits for it"))
			}
			return t.People.Withdraw(within, c.Run, id)
		}) // else it ends by itself
		return true, api.Failure(api.CodeCancelled, "", "the call was cancelled")
	case err == nil && state == api.ApprovalGone:
		err = api.Failure(api.CodeDenied, "", "people refused it: the question was taken back").By(service.StageApproval, id)
	}
	return false, err
}

// answer waits until a question does not wait.
func (t *Tools) answer(ctx context.Context, run agent.Run, id string) (api.ApprovalState, error) {
	var answer api.ApprovalResult
	params, err := json.Marshal(api.ApprovalGetParams{ID: id, Answered: true})
	if err != nil {
		return "", err
	}
	text, err := t.engine.Call(ctx, service.Caller{Run: run}, service.Request{Method: methods.ApprovalGet.Name, Text: params})
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer.Approval.State, err
}

// waits counts the calls that wait for a question, and returns how many do.
func (t *Tools) waits(q question, more int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = map[string]int{}
	}
	if t.waiting[q.key] += more; t.waiting[q.key] == 0 {
		delete(t.waiting, q.key)
		return 0
	}
	return t.waiting[q.key]
}
