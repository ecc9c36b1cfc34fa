package control

import (
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// bill is what settles a call, and what is reported of it.
type bill struct {
	demand
	reservation string
	reserved    budget.Amounts // for the present try
	used        budget.Amounts // by tries that have ended, and not paid
	spent       spent          // by all tries that have ended
	found       bool           // another control has made the call
	began       time.Time
	wait        time.Duration // of all tries
	sent        time.Time     // to clove-upstream
	last        *link.Done    // of the last try; nil: clove-upstream has reported nothing
	cancelled   bool          // its client was gone when it ended
}

// add adds what a try used. All of them are one call.
func (b *bill) add(d link.Done) {
	b.last = &d
	u := d.Usage
	used := budget.Amounts{budget.TokensIn: u.In + u.CacheWrite, budget.TokensOut: u.Out, budget.TokensCached: u.Cached}
	if b.target.Price != nil {
		used[budget.CostMicros] = b.target.Price.Cost(u, d.Tiers...)
	}
	b.spent.add(u, used[budget.CostMicros])
	b.spent.estimated = b.spent.estimated || d.Estimated
	b.spent.over = b.spent.over || b.exceeded(used)
	b.used = sum(b.used, used)
	if counts(d) {
		b.used[budget.ModelCalls] = 1
	}
}

// counts reports whether a try makes its call one of model_calls: the provider has served the
// request, has refused it for what it says, or may have served it.
func counts(d link.Done) bool {
	return d.Sent && (d.Status < 300 || d.Status >= 400 && d.Status < statusFailed && d.Status != statusTooMany)
}

// sum adds amounts, and leaves out those that are 0.
func sum(a, b budget.Amounts) budget.Amounts {
	all := budget.Amounts{}
	for _, part := range []budget.Amounts{a, b} {
		for d, amount := range part {
			if amount != 0 {
				all[d] = budget.Sum(all[d], amount)
			}
		}
	}
	return all
}

// exceeded reports whether a try used more than was reserved for it. Where nothing bounds the
// output, none was reserved.
func (b *bill) exceeded(used budget.Amounts) bool {
	for d, amount := range used {
		if most := b.reserved[d]; most > 0 && amount > most {
			return true
		}
	}
	return false
}

// paid is the report of a call that was settled: how its last try ended, and what all have used.
func (b *bill) paid() models.Call {
	r := models.Call{Outcome: models.OutcomeLost, Usage: b.spent.usage, Cost: b.spent.cost, Estimated: b.spent.estimated}
	if !b.sent.IsZero() {
		r.Total = time.Since(b.sent)
	}
	if d := b.last; d != nil {
		r.Outcome, r.Status, r.First, r.Total = outcomeOf(*d, b.cancelled), d.Status, d.First, d.Total
		r.Answered = strings.ToValidUTF8(d.Model[:min(len(d.Model), maxAnswered)], "")
	}
	return b.about(r)
}

// about fills in what is known of each call.
func (b *bill) about(r models.Call) models.Call {
	r.ID, r.Model, r.Target, r.Format, r.Stream = b.reservation, b.target.Name, b.target.Model, b.begin.Format, b.begin.Stream
	if b.target.Provider != nil {
		r.Provider = b.target.Provider.Name
	}
	r.Began, r.Wait, r.Trace = b.began, b.wait, b.begin.Trace
	return r
}

// maxAnswered bounds the name that a provider gives its model, in bytes.
const maxAnswered = 128

// outcomeOf is what became of a call that clove-upstream has made.
func outcomeOf(d link.Done, cancelled bool) models.Outcome {
	switch {
	case d.Status == statusOK && d.Complete:
		return models.OutcomeOK
	case cancelled:
		return models.OutcomeCancelled
	case d.Status == statusOK:
		return models.OutcomeBroken
	case d.Status == statusTooMany, d.Status == statusUnavailable, d.Status == statusOverloaded:
		return models.OutcomeOverloaded
	case d.Status >= 400 && d.Status < statusFailed:
		return models.OutcomeRejected
	}
	return models.OutcomeFailed
}

// ticket is what settles a call whose control is gone. clove-upstream has it and does not read
// it.
type ticket struct {
	Run         agent.ID       `json:"run"`
	Reservation string         `json:"reservation"`
	Reserved    budget.Amounts `json:"reserved"`
	Model       string         `json:"model"`
	Provider    string         `json:"provider"`
	Target      string         `json:"target"`
	Price       *config.Price  `json:"price,omitempty"`
	Begin       link.Begin     `json:"begin"`
	Began       time.Time      `json:"began"`
	Wait        time.Duration  `json:"wait"`
	// Of the tries before:
	Used      budget.Amounts `json:"used,omitempty"`
	Usage     models.Usage   `json:"usage"`
	Cost      int64          `json:"cost,omitempty"`
	Over      bool           `json:"over,omitempty"`
	Estimated bool           `json:"estimated,omitempty"`
}

// ticket is that of a bill of a run. There is no value that has none.
func (b *bill) ticket(run agent.ID) json.RawMessage {
	begin := b.begin
	begin.Run, begin.Model, begin.Betas, begin.Tiers = "", "", nil, nil // clove-upstream gets no text of the agent's
	text, _ := json.Marshal(ticket{Run: run, Reservation: b.reservation, Reserved: b.reserved, Model: b.target.Name, Provider: b.target.Provider.Name,
		Target: b.target.Model, Price: b.target.Price, Begin: begin, Began: b.began, Wait: b.wait,
		Used: b.used, Usage: b.spent.usage, Cost: b.spent.cost, Over: b.spent.over, Estimated: b.spent.estimated})
	return text
}

// bill is that of a call which another control has made.
func (t *ticket) bill() *bill {
	target := config.Target{Name: t.Model, Model: t.Target, Provider: &config.Provider{Name: t.Provider}, Price: t.Price}
	return &bill{demand: demand{begin: t.Begin, target: target}, found: true, reservation: t.Reservation, reserved: t.Reserved,
		used: t.Used, spent: spent{t.Usage, t.Cost, t.Over, t.Estimated}, began: t.Began, wait: t.Wait, sent: t.Began}
}

// Service is the name under which models reserve.
const Service = "model"

// settler pays bills of calls that have ended. It does not know how they are made.
type settler struct {
	ledger Ledger
	called func(run agent.Run, c models.Call) // nil: reports go nowhere
	log    *slog.Logger
}

// add adds what a try used to a run's bill.
func (s *settler) add(by *served, b *bill, d link.Done) {
	b.add(d)
	by.learned.learn(b.target, b.begin.In, d)
	if !counts(d) {
		by.uncounted.Reserve()
	}
}

// settle pays for what a call used, with all its tries.
func (s *settler) settle(by *served, b *bill, d link.Done) {
	s.add(by, b, d)
	s.pay(by, b, b.used, d.Status != statusOK)
}

// pay settles a call's reservation, and counts it for the run. A call that failed says nothing of
// what the next may want.
func (s *settler) pay(by *served, b *bill, used budget.Amounts, failed bool) {
	settlement := ledger.Settlement{Service: Service, Reservation: b.reservation, Used: used, Ceiling: b.ceiling(by.run.Owner.UID)}
	if !failed && !b.found {
		settlement.Ahead = b.ahead()
	}
	err := s.ledger.Settle(by.run, settlement)
	if err != nil && agent.KindOf(err) != agent.KindNotFound && api.ErrorOf(err).Code != api.CodeNotFound {
		s.log.Error("a call of a model is not settled", "run", by.run.Spec.ID, "error", err)
	}
	by.tally.count(b.target.Name, b.spent, failed)
	by.fly(b.target.Name, -1)
	s.report(by, b.paid())
}

// report reports a call that has ended.
func (s *settler) report(by *served, c models.Call) {
	if s.called != nil {
		s.called(by.run, c)
	}
}
