package kernel

import (
	"cmp"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// Bounds of answers.
const (
	daySumsInAnswer = 500
	topUnlessAsked  = 10
	topMost         = 100
)

// ReportBudgets returns what users spent by day and dimension. Root sees all users, others
// themselves.
func (k *Kernel) ReportBudgets(uid uint32, p api.BudgetReportParams) (answer api.BudgetReportResult, err error) {
	for _, day := range []string{p.From, p.To} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return answer, api.Failure(api.CodeParams, "write it as 2026-11-23", "%.32q is not a day", day)
		}
	}
	choice := store.DayChoice{From: p.From, To: p.To, After: p.After}
	if uid != 0 {
		choice.Owner = &uid
	}
	answer.Days = []api.DaySum{}
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		sums, err := tx.DaySums(choice, daySumsInAnswer)
		for _, s := range sums {
			answer.Days = append(answer.Days, api.DaySum{Day: s.Day, Owner: s.Owner, Dimension: s.Dimension, Used: s.Used})
		}
		if len(sums) == daySumsInAnswer {
			answer.Next = sums[len(sums)-1].Key()
		}
		return err
	})
	return answer, err
}

// TopBudgets returns which runs spend most now. Root sees all of them, others their own.
func (k *Kernel) TopBudgets(uid uint32, p api.BudgetTopParams) (answer api.BudgetTopResult, err error) {
	if p.Limit < 0 || p.Limit > topMost {
		return answer, api.Failure(api.CodeParams, "", "limit: use a number to %d", topMost)
	}
	answer.Spenders = k.rates.top(k.now(), cmp.Or(p.Limit, topUnlessAsked), func(owner uint32, d budget.Dimension) bool {
		return (uid == 0 || uid == owner) && (p.Dimension == "" || string(d) == p.Dimension)
	})
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		for i := range answer.Spenders {
			if err := addLine(tx, &answer.Spenders[i], k.now()); err != nil {
				return err
			}
		}
		return nil
	})
	return answer, err
}

// LastMinute returns what a run spent in the last minute, since the Kernel began if that is
// later, without what is zero.
func (k *Kernel) LastMinute(run agent.ID) budget.Amounts { return k.rates.spent(run, k.now()) }

// addLine adds what the run has used in all, and its limit.
func addLine(tx *store.KernelTx, s *api.Spender, now time.Time) error {
	a, err := tx.Account(budget.RunKey(s.Owner, s.ID))
	if err != nil || a == nil || a.Lines[budget.Dimension(s.Dimension)] == nil {
		return err
	}
	line := a.Lines[budget.Dimension(s.Dimension)].At(now)
	if s.Used = line.Used; !line.Unlimited {
		s.Granted = &line.Granted
	}
	return nil
}
