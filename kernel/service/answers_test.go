package service

import (
	"slices"
	"sync"

	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
)

// answers is what the stages of the tests ask.
type answers struct {
	mu       sync.Mutex // guards the following
	granted  bool
	carried  []string
	reserved map[string]int64 // by the call's id
	used     []int64
	asked    []Question
	decided  map[string]Approval
	passed   []string
	uses     []string
	stood    int // how often a standing was read
}

func costs(p putParams) (budget.Amounts, error) {
	if p.Costs == 0 {
		return nil, nil
	}
	return budget.Amounts{"units": p.Costs}, nil
}

func (a *answers) with(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

func (a *answers) count(n *int) { a.with(func() { *n++ }) }

func (a *answers) Cover(_ *Call, what string) (rule string, err error) {
	a.with(func() {
		if len(a.passed) == 0 || a.passed[len(a.passed)-1] != "grant" {
			a.passed = append(a.passed, "grant")
		}
		if !a.granted {
			err = api.Failure(api.CodeDenied, "", "no grant covers %s", what)
		}
	})
	return "grant of " + what, err
}

func (a *answers) Use(_ *Call, rule string) error {
	a.with(func() { a.uses = append(a.uses, rule) })
	return nil
}

func (a *answers) Carried(*Call) (all []string, err error) {
	a.with(func() { a.passed, all = append(a.passed, "taints"), slices.Clone(a.carried) })
	return all, nil
}

func (a *answers) Reserve(c *Call, costs budget.Amounts) (out Outcome, err error) {
	a.with(func() {
		a.passed = append(a.passed, "budget")
		if costs["units"] > 100 {
			err = api.Failure(api.CodeBudget, "", "there are 100")
			return
		}
		if a.reserved == nil {
			a.reserved = map[string]int64{}
		}
		a.reserved[c.ID] = costs["units"]
	})
	return out, err
}

func (a *answers) Settle(c *Call, used budget.Amounts) (out Outcome, err error) {
	a.with(func() {
		a.passed = append(a.passed, "settle")
		delete(a.reserved, c.ID)
		a.used = append(a.used, used["units"])
	})
	return out, nil
}

func (a *answers) Ask(c *Call, _ Asking) (out Outcome, err error) {
	a.with(func() { a.passed, a.asked = append(a.passed, "approval"), append(a.asked, c.Question()) })
	out.Notify(c.Run.Spec.ID, Notice{Kind: "note.asked"})
	return out, nil
}

func (a *answers) Decided(c *Call) (answer Approval, why string, err error) {
	a.with(func() { answer = a.decided[c.Question().ID] })
	return answer, "", nil
}

func (a *answers) decide(id string, approve bool) {
	a.with(func() {
		if a.decided == nil {
			a.decided = map[string]Approval{}
		}
		a.decided[id] = Denied
		if approve {
			a.decided[id] = Approved
		}
	})
}

// open returns the questions that were asked.
func (a *answers) open() (all []Question) {
	a.with(func() { all = slices.Clone(a.asked) })
	return all
}
