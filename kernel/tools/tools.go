package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
	"clove.run/clove/tools"
)

// Name is the service's, in audit entries and reservations.
const Name = "tool"

// Ledger reserves and settles. *ledger.Ledger is one.
type Ledger interface {
	Reserve(run agent.Run, s ledger.Spending) (reservation string, err error)
	Settle(run agent.Run, s ledger.Settlement) error
	Called(run agent.ID, what agent.RunEventKind, call, detail string)
}

// Places are where tools run.
type Places interface {
	// Inside runs a program in the sandbox of a run, as inside.Run does.
	Inside(ctx context.Context, run agent.Run, e agent.Exec, stdin []byte, out tools.Output) (exitCode int, err error)
}

// Tools is the service. Its methods may be called from many goroutines.
type Tools struct {
	Ledger Ledger
	Grants service.Grants
	Places Places // nil: no tools run here
	People People
	// Read runs a read transaction.
	Read func(func(*store.KernelTx) error) error

	engine  Engine
	working working
	mu      sync.Mutex     // guards waiting
	waiting map[string]int // calls that wait for people, by question.key
}

// Service returns its methods.
func (t *Tools) Service() *service.Service {
	return service.New("tools").On(
		service.Read(agents.ToolList, service.Stages[api.ToolListParams]{}, t.list),
		service.Stream(agents.ToolCall, t.call),
		service.Write(methods.ToolAdd, service.Stages[api.ToolAddParams]{}, t.add),
		service.Read(methods.ToolShow, service.Stages[api.ToolShowParams]{}, t.show),
		service.Read(methods.ToolKept, service.Stages[api.ToolKeptParams]{}, t.kept),
		service.Write(methods.ToolRemove, service.Stages[api.ToolNameParams]{}, t.remove),
	)
}

// partBytes bounds the tools of one answer.
const partBytes = 32 << 10

// part returns the tools behind a name that fit into an answer, and where the next answer goes on.
func part(sorted []api.KeptTool, after string) (fit []api.KeptTool, next string) {
	fit = []api.KeptTool{}
	size := 0
	for _, k := range sorted {
		if k.Name <= after {
			continue
		}
		text, _ := json.Marshal(k) // it was read from JSON
		if size += len(text); size > partBytes && len(fit) > 0 {
			return fit, fit[len(fit)-1].Name
		}
		fit = append(fit, k)
	}
	return fit, ""
}

// list shows the tools that the run's grants cover.
func (t *Tools) list(c *service.Call, p api.ToolListParams) (result api.ToolListResult, out service.Outcome, err error) {
	result.Tools = []tools.Tool{}
	sorted, err := all(c.Tx, c.Run.Owner.UID)
	if err != nil {
		return result, out, err
	}
	sorted = slices.DeleteFunc(sorted, func(k api.KeptTool) bool {
		_, err := t.Grants.Cover(c, scope(k.Name))
		return err != nil
	})
	fit, next := part(sorted, p.After)
	for _, k := range fit {
		result.Tools = append(result.Tools, k.Tool)
	}
	result.Next = next
	return result, out, nil
}

// scope is what a grant must cover.
func scope(tool string) string { return "tool:" + tool }

// costs refuses what no budget counts.
func costs(own map[string]int64) error {
	for name, amount := range own {
		d, err := budget.ParseDimension(name)
		if err == nil && (!d.Own() || amount < 1) {
			err = fmt.Errorf("a tool costs at least 1 of a dimension of your own, not %d of %s", amount, name)
		}
		if err != nil {
			return api.Failure(api.CodeParams, "", "costs: %v", err)
		}
	}
	return nil
}

// amounts are what a call costs.
func amounts(d tools.Definition) budget.Amounts {
	all := budget.Amounts{budget.ToolCalls: 1}
	for name, amount := range d.Costs {
		all[budget.Dimension(name)] = amount
	}
	return all
}

// defined finds a tool for a call, which has no transaction.
func (t *Tools) defined(c *service.Call, name string) (d tools.Definition, err error) {
	readErr := t.Read(func(tx *store.KernelTx) error {
		k, err := find(tx, c.Run.Owner.UID, name)
		d = k.Definition
		return err
	})
	return d, readErr
}

// call is one call. Its refusal by the ledger is in the audit log already.
func (t *Tools) call(c *service.Call, p api.ToolCallParams) (result api.ToolCallResult, out service.Outcome, err error) {
	d, err := t.defined(c, p.Tool)
	if err != nil {
		return result, out, err
	}
	timeout, err := timeoutOf(d, p.TimeoutMS)
	if err != nil {
		return result, out, err
	}
	if len(p.Arguments) > tools.MaxArguments {
		return result, out, api.Failure(api.CodeTooLarge, "give the tool the path of a file", "the arguments have more than %d bytes", tools.MaxArguments)
	}
	if t.Places == nil {
		return result, out, api.Failure(api.CodeUnenforceable, agent.StartCloved(), "no tools run here")
	}
	leave, err := t.working.enter(c.Context, c.Run.Spec.ID)
	if err != nil {
		return result, out, err
	}
	defer leave()
	s := ledger.Spending{Service: Name, Method: agents.ToolCall.Name, What: scope(d.Name), Fit: func(budget.Left) (budget.Amounts, error) { return amounts(d), nil }}
	if !c.Agent {
		s.User = &c.UID
	}
	if result.Call, out.Recorded, err = t.reserve(c, d, p.Arguments, s); err != nil {
		out.About = s.What
		return result, out, err
	}
	began := time.Now()
	ran, err := t.run(c, d, p, timeout, &result)
	result.DurationMS = time.Since(began).Milliseconds()
	used := amounts(d)
	ahead := used
	switch {
	case !ran:
		used, ahead = nil, nil
	case asks(c.Run, d): // the next call waits for people first
		ahead = nil
	}
	out.Recorded = true // the settlement is its record
	settled := t.Ledger.Settle(c.Run, ledger.Settlement{Service: Name, Reservation: result.Call, Used: used, Ahead: ahead})
	t.Ledger.Called(c.Run.Spec.ID, agent.RunToolCalled, result.Call, detail(d.Name, result, err))
	return result, out, cmp.Or(err, settled)
}

// timeoutOf is how long a call may take.
func timeoutOf(d tools.Definition, ms int64) (time.Duration, error) {
	most := d.MostTime()
	if ms < 0 || ms > most.Milliseconds() {
		return 0, api.Failure(api.CodeParams, fmt.Sprintf("give 1 to %d, or leave it out", most.Milliseconds()), "a call of %s cannot take %d ms", d.Name, ms)
	}
	return cmp.Or(time.Duration(ms)*time.Millisecond, most), nil
}

// errOverTime is why a program is ended at its time limit.
var errOverTime = errors.New("its time is over")

// run runs the program, and reports whether it ran.
func (t *Tools) run(c *service.Call, d tools.Definition, p api.ToolCallParams, timeout time.Duration, result *api.ToolCallResult) (ran bool, err error) {
	order := tools.Order{Tool: d.Name, Command: d.Command, Arguments: p.Arguments, Most: tools.MaxText}
	if len(p.Arguments) == 0 {
		order.Arguments = json.RawMessage("{}")
	}
	if d.Kind == tools.KindCommand {
		order.Schema = d.Arguments
	}
	stdin, err := json.Marshal(order)
	if err != nil {
		return false, api.Failure(api.CodeParams, "give an object of JSON", "the arguments are no JSON")
	}
	text, reason := &head{most: tools.MaxText}, &tail{most: tools.MaxError}
	ctx, cancel := context.WithTimeoutCause(c.Context, timeout, errOverTime)
	defer cancel()
	code, err := t.Places.Inside(ctx, c.Run, agent.Exec{Command: []string{tools.Program}, KillRest: true}, stdin, tools.Output{Stdout: text, Stderr: reason})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, api.Failure(api.CodeUnenforceable, "start the run with --grant tool:"+d.Name, "the run was started without tools, so its sandbox has no place for them")
	case errors.Is(err, errOverTime):
		result.Failed, result.Error = true, fmt.Sprintf("it was ended at its time limit of %s", timeout)
	case err != nil:
		return false, err
	case code != tools.ExitDone:
		result.Failed, result.Error = true, cmp.Or(reason.text(), fmt.Sprintf("it ended with status %d", code))
	}
	result.Text, result.Left = text.text()
	return true, nil
}

// detail is a call for people. It holds no text of an agent's.
func detail(tool string, r api.ToolCallResult, err error) string {
	how := "done"
	switch {
	case err != nil:
		how = "not done"
	case r.Failed:
		how = "failed"
	}
	return fmt.Sprintf("%s: %s bytes=%d total_ms=%d", tool, how, len(r.Text), r.DurationMS)
}
