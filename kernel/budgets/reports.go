package budgets

import (
	"cmp"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Bounds of answers.
const (
	daySumsInAnswer = 500
	topUnlessAsked  = 10
	topMost         = 100
)

// report returns what users spent by day and dimension. Root sees all users, others themselves.
func report(c *service.Call, p api.BudgetReportParams) (answer api.BudgetReportResult, out service.Outcome, err error) {
	for _, day := range []string{p.From, p.To} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return answer, out, api.Failure(api.CodeParams, "write it as 2026-11-23", "%.32q is not a day", day)
		}
	}
	choice := store.DayChoice{From: p.From, To: p.To, After: p.After}
	if !c.Root() {
		choice.Owner = &c.UID
	}
	answer.Days = []api.DaySum{}
	sums, err := store.DailySums.Choose(c.Tx, choice, daySumsInAnswer)
	for _, s := range sums {
		answer.Days = append(answer.Days, api.DaySum{Day: s.Day, Owner: s.Owner, Dimension: s.Dimension, Used: s.Used})
	}
	if len(sums) == daySumsInAnswer {
		answer.Next = sums[len(sums)-1].Key()
	}
	return answer, out, err
}

// top returns which runs spend most now. Root sees all of them, others their own.
func (b *Budgets) top(c *service.Call, p api.BudgetTopParams) (answer api.BudgetTopResult, out service.Outcome, err error) {
	if p.Limit < 0 || p.Limit > topMost {
		return answer, out, api.Failure(api.CodeParams, "", "limit: use a number to %d", topMost)
	}
	answer.Spenders = b.rates.top(c.Now, cmp.Or(p.Limit, topUnlessAsked), func(owner uint32, d budget.Dimension) bool {
		return (c.Root() || c.UID == owner) && (p.Dimension == "" || string(d) == p.Dimension)
	})
	for i := range answer.Spenders {
		if err := addLine(c.Tx, &answer.Spenders[i], c.Now); err != nil {
			return answer, out, err
		}
	}
	return answer, out, nil
}

// addLine adds what the run has used in all, and its limit.
func addLine(tx *store.KernelTx, s *api.Spender, now time.Time) error {
	a, err := store.Accounts.Get(tx, string(budget.RunKey(s.Owner, s.ID)))
	if err != nil || a == nil || a.Lines[budget.Dimension(s.Dimension)] == nil {
		return err
	}
	line := a.Lines[budget.Dimension(s.Dimension)].At(now)
	if s.Used = line.Used; !line.Unlimited {
		s.Granted = &line.Granted
	}
	return nil
}
