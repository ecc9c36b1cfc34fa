package budgets

import (
	"fmt"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Spent stores a chain with what was spent from it, and notes what that means for the run.
func (b *Budgets) Spent(c *service.Call, chain budget.Chain, out *service.Outcome, effects ...budget.Effects) error {
	for _, e := range effects {
		note(c, e, out)
		if len(e.Used) > 0 {
			out.Durable = append(out.Durable, func() { b.rates.add(c.Run, c.Now, e.Used) })
		}
	}
	return putSpent(c.Tx, chain, c.Now, effects...)
}

// putSpent stores a chain, and adds what was spent from it to the sums of the day.
func putSpent(tx *store.KernelTx, chain budget.Chain, now time.Time, effects ...budget.Effects) error {
	for _, e := range effects {
		if len(e.Used) == 0 {
			continue
		}
		owner, _ := chain[0].Key.Owner()
		if err := store.DailySums.Count(tx, owner, e.Used, now); err != nil {
			return err
		}
	}
	return store.Accounts.PutChain(tx, chain)
}

// note adds what a change of the chain means for the run, and which accounts have nothing left: that
// concerns all runs below them. The effect that ends or pauses a run is the cause of its end.
func note(c *service.Call, e budget.Effects, out *service.Outcome) {
	run := c.Run.Spec.ID
	out.Add(service.Outcome{Below: below(ended(e)...)})
	for _, n := range e.Warned {
		out.Notify(run, noticeOf(api.NoteBudgetWarning, n))
		out.Events = append(out.Events, service.Event{Kind: agent.RunBudgetWarned, Detail: textOf(n)})
	}
	for _, n := range e.Ended {
		kind := agent.RunBudgetEnded
		if n.AtEnd == budget.Pause {
			kind = agent.RunBudgetPaused
			out.Notify(run, noticeOf(api.NoteBudgetPause, n))
		}
		out.Ends = out.Ends || n.AtEnd == budget.End
		out.Events = append(out.Events, service.Event{Kind: kind, Detail: textOf(n) + ", at end: " + string(n.AtEnd)})
	}
	if len(e.Warned)+len(e.Ended) > 0 {
		out.Changed = append(out.Changed, run)
	}
}

// ended are the accounts that exceeded a limit. A run's own is among them: the runs that its agent
// started spend from it.
func ended(e budget.Effects) (keys []budget.Key) {
	for _, n := range e.Ended {
		keys = append(keys, n.Account)
	}
	return keys
}

func textOf(n budget.Notice) string {
	return fmt.Sprintf("%s of %s: %s of %s", n.Dimension.Title(), n.Account, n.Dimension.Show(n.Used+n.Reserved), n.Dimension.Show(n.Granted))
}

func noticeOf(kind string, n budget.Notice) service.Notice {
	return service.Notice{Kind: kind, Key: string(n.Account) + " " + string(n.Dimension), Params: noteOf(n)}
}

func noteOf(n budget.Notice) api.BudgetNote {
	granted := n.Granted
	b := api.Budget{Account: string(n.Account), Dimension: string(n.Dimension), Granted: &granted, Reserved: n.Reserved, Used: n.Used, Peak: n.Peak,
		Period: string(n.Period), AtEnd: string(n.AtEnd)}
	if n.WarnAt > 0 {
		warn := n.WarnAt
		b.WarnAt = &warn
	}
	return api.BudgetNote{Budget: b}
}
