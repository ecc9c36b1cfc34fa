package control

import (
	"clove.run/clove/kernel/ledger"
	"maps"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
	"clove.run/clove/models/route"
)

// twoTargets is a configuration whose model has a fallback that costs twice as much.
const twoTargets = `
providers:
  p: {family: openai, url: "https://p.example/v1", users: ["*"]}
  q: {family: openai, url: "https://q.example/v1", users: ["*"]}
models:
  small: {targets: [{provider: p, model: first}, {provider: q, model: second, fallback: 1}]}
prices:
- {provider: p, model: first, in: 1000, out: 1000, date: 2026-11-20, source: a test}
- {provider: q, model: second, in: 2000, out: 2000, date: 2026-11-20, source: a test}
`

var (
	overloaded  = link.Done{Status: 529, Sent: true}
	unreachable = link.Done{Unreached: true, Error: "the provider cannot be reached"}
	tooSlow     = link.Done{Sent: true, Error: "the provider did not answer in time", Usage: models.Usage{In: 100}}
	answered    = link.Done{Status: 200, Sent: true, First: 1, Complete: true, Usage: models.Usage{In: 100, Out: 10}}
)

func (l *spentLedger) Renew(_ agent.Run, n ledger.Renewal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, found := l.open[n.Reservation]
	if !found || r.Service != n.Service {
		return api.Failure(api.CodeNotFound, "", "no reservation %s", n.Reservation)
	}
	before := maps.Clone(l.used)
	l.used.Add(n.Used)
	delete(l.open, n.Reservation)
	amounts, err := n.Fit(l.left())
	if err == nil && !amounts.Fits(l.left().Free) {
		err = api.Failure(api.CodeBudget, "", "%v wanted, %v left", amounts, l.left())
	}
	if err != nil {
		l.used, l.open[n.Reservation] = before, r
		return err
	}
	r.amounts, r.Ceiling = amounts, n.Ceiling
	l.open[n.Reservation] = r
	l.renewed = append(l.renewed, amounts)
	return nil
}

// isUsed returns what was paid so far.
func (l *spentLedger) isUsed() budget.Amounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.used)
}

// several is a rig for calls that several targets may serve.
type several struct {
	*rig
	run    agent.Run
	front  *fake
	up     *fake
	number uint64     // of the last call
	call   *link.Call // of its present target
}

func newSeveral(t *testing.T, config string) *several {
	t.Helper()
	s := &several{rig: newRig(t)}
	s.load(config)
	s.run, s.front = s.started()
	return s
}

// begin begins a call, and returns the model of the target that serves it.
func (s *several) begin() string { return s.beginOf(s.run) }

func (s *several) beginOf(run agent.Run) string {
	s.t.Helper()
	s.number++
	b := ask(s.number, run, "small")
	s.front.send(link.FromFront{Begin: &b})
	return s.goes()
}

// goes waits for a Go and its Call, and returns the model.
func (s *several) goes() string {
	s.t.Helper()
	m := within(s.t, s.front.front)
	if m.Go == nil || m.Go.Number != s.number {
		s.t.Fatalf("%+v, %+v", m, m.Refuse)
	}
	if s.up == nil {
		s.up = within(s.t, s.upstreams)
	}
	s.call = within(s.t, s.up.up).Call
	return m.Go.Model
}

// ends ends the call as a target reports it.
func (s *several) ends(d link.Done) {
	s.t.Helper()
	d.Number = s.call.Number
	s.up.send(link.FromUpstream{Done: &d})
}

// fails ends it, and returns the model that it goes on with.
func (s *several) fails(d link.Done) string {
	s.t.Helper()
	s.ends(d)
	return s.goes()
}

// stands waits for the message that no other target follows.
func (s *several) stands() {
	s.t.Helper()
	if m := within(s.t, s.front.front); m.Refuse == nil || m.Refuse.Number != s.number {
		s.t.Fatalf("%+v", m)
	}
}

// costs are the amounts of a settlement.
func costs(money, in, out int64) budget.Amounts {
	return sum(budget.Amounts{budget.ModelCalls: 1, budget.CostMicros: money, budget.TokensIn: in, budget.TokensOut: out}, nil)
}

// A call that its target fails goes on with the next: one reservation, which becomes what the
// next may cost when what was used is paid.
func TestACallGoesOnWithAnotherTarget(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end  link.Done
		paid budget.Amounts // before the second; reserved are 200 at first: 100 tokens in, 100 out
	}{
		"overloaded":  {overloaded, budget.Amounts{}},
		"unreachable": {unreachable, budget.Amounts{}},
		"too slow":    {tooSlow, budget.Amounts{budget.TokensIn: 100, budget.CostMicros: 100}},
	} {
		s := newSeveral(t, twoTargets)
		if got := s.begin(); got != "first" || s.call.Provider != "p" {
			t.Fatalf("%s: %s", name, got)
		}
		if got := s.fails(row.end); got != "second" || s.call.Provider != "q" || s.call.In != 100 || s.call.MostOut != 100 {
			t.Errorf("%s: %s, %+v", name, got, s.call)
		}
		if paid := s.ledger.isUsed(); !maps.Equal(paid, row.paid) {
			t.Errorf("%s: %v are paid, not %v", name, paid, row.paid)
		}
		s.ends(answered)
		if used := within(t, s.ledger.settled); !maps.Equal(used, costs(220, 100, 10)) {
			t.Errorf("%s: %v are used", name, used)
		}
		if want := costs(400, 100, 100); len(s.ledger.renewed) != 1 || !maps.Equal(s.ledger.renewed[0], want) {
			t.Errorf("%s: renewed to %v, not %v", name, s.ledger.renewed, want)
		}
		if all, open := s.ledger.reservations(); len(all) != 1 || open != 0 {
			t.Errorf("%s: %+v, %d open", name, all, open)
		}
		if u := s.used(); len(u) != 1 || u[0].Calls != 1 || u[0].Failed != 0 || u[0].CostMicros != 220+row.paid[budget.CostMicros] {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// A target that costs no more needs no more: a second reservation beside the first would not fit.
func TestACheaperTargetTakesNoMore(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, `
providers: {p: {family: openai, url: "https://p.example/v1", users: ["*"]}, q: {family: openai, url: "https://q.example/v1", users: ["*"]}}
models: {small: {targets: [{provider: p, model: a}, {provider: q, model: b, fallback: 1}]}}
prices:
- {provider: p, model: a, in: 2000, out: 2000, date: 2026-11-20, source: a test}
- {provider: q, model: b, in: 1000, out: 1000, date: 2026-11-20, source: a test}
`)
	s.begin()
	s.ledger.mu.Lock()
	s.ledger.limits[budget.CostMicros] = 400 // as the first may cost
	s.ledger.mu.Unlock()
	if got := s.fails(overloaded); got != "b" {
		t.Errorf("%s, %v", got, s.ledger.renewed)
	}
}

// What does not fit, is not granted any more, or has begun does not go on, and the failure
// stands. The control goes on.
func TestACallDoesNotGoOn(t *testing.T) {
	t.Parallel()
	most := func(money int64) func(*several) {
		return func(s *several) { s.ledger.limits[budget.CostMicros] = money }
	}
	nothing := func(*several) {}
	for name, row := range map[string]struct {
		change func(*several) // behind the begin; the ledger is locked
		end    link.Done
		on     bool
	}{
		"control":             {nothing, overloaded, true},
		"control: it fits":    {most(400), overloaded, true},
		"too dear":            {most(399), overloaded, false},
		"the grant is gone":   {func(s *several) { delete(s.ledger.grants, "model:small") }, overloaded, false},
		"it has begun":        {nothing, link.Done{Status: 200, Sent: true, First: 1, Error: "the answer broke off"}, false},
		"the request broke":   {nothing, link.Done{Error: "the request broke off"}, false},
		"a wrong request":     {nothing, link.Done{Status: 400, Sent: true}, false},
		"its own failure":     {nothing, link.Done{Status: 500, Sent: true, First: 1}, false},
		"control: no token":   {nothing, link.Done{Status: 200, Sent: true, Error: "the provider did not answer in time"}, true},
		"a redirection":       {nothing, link.Done{Status: 307, Sent: true, Error: "the provider answers with a redirection"}, false},
		"an answer of 0 size": {nothing, link.Done{Status: 200, Sent: true}, false},
	} {
		s := newSeveral(t, twoTargets)
		s.begin()
		s.ledger.mu.Lock()
		row.change(s)
		s.ledger.mu.Unlock()
		if row.on {
			if got := s.fails(row.end); got != "second" {
				t.Errorf("%s: %s", name, got)
			}
			continue
		}
		s.ends(row.end)
		within(t, s.ledger.settled)
		if row.end.First == 0 {
			s.stands()
		}
		s.ledger.mu.Lock()
		s.ledger.grants["model:small"] = true
		delete(s.ledger.limits, budget.CostMicros)
		s.ledger.mu.Unlock()
		s.begin() // nothing was said between, and the places are free
		if _, open := s.ledger.reservations(); open != 1 {
			t.Errorf("%s: %d are open", name, open)
		}
	}
}

// A provider that fails every other call has a share of its calls repeated, beside the floor.
func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, twoTargets)
	retried := 0
	for range 10 {
		s.begin()
		s.ends(answered)
		within(t, s.ledger.settled)
		s.begin()
		s.ends(overloaded)
		m := within(t, s.front.front)
		if m.Go != nil {
			retried++
			s.call = within(t, s.up.up).Call
			s.ends(answered)
		}
		within(t, s.ledger.settled)
	}
	if most := route.Floor + 20/route.Share; retried != most {
		t.Errorf("%d of 10 were repeated, not %d", retried, most)
	}
}

// A clove-upstream that ends behind the first try costs what was reserved for the second.
func TestALostSecondTry(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, twoTargets)
	s.begin()
	s.fails(tooSlow)
	s.up.conn.Close()
	if used := within(t, s.ledger.settled); !maps.Equal(used, costs(400, 100, 100)) {
		t.Errorf("%v", used)
	}
	if all := s.ledger.isUsed(); !maps.Equal(all, costs(500, 200, 100)) {
		t.Errorf("%v in all", all)
	}
	if u := s.used(); len(u) != 1 || u[0].Calls != 1 || u[0].Failed != 1 || u[0].CostMicros != 500 || u[0].TokensIn != 200 {
		t.Errorf("%+v", u)
	}
}

// Each try is paid at its own provider: what a user may spend at one is no other's.
func TestEachTryIsPaidAtItsProvider(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	s := &several{rig: newRigWith(t, k.Ledger)}
	s.load(`
providers:
  p: {family: openai, url: "https://p.example/v1", users: ["*"], budgets: {1000: [tokens=1000]}}
  q: {family: openai, url: "https://q.example/v1", users: ["*"], budgets: {1000: [tokens=500]}}
models:
  small: {targets: [{provider: p, model: first}, {provider: q, model: second, fallback: 1}]}
`)
	s.run, s.front = s.started()
	attach(t, k, s.run, "end")
	left := func(provider string, want int64) {
		t.Helper()
		ceiling := &ledger.Ceiling{Account: budget.ProviderKey(1000, provider), Limits: s.config.Load().Providers[provider].Budget(1000)}
		if left, err := k.Ledger.Left(s.run, ceiling); err != nil || left.Unheld.Of(budget.Tokens) != want {
			t.Errorf("%s: %+v, %v, want %d", provider, left, err, want)
		}
	}
	s.begin()
	s.fails(tooSlow) // 100
	left("p", 900)
	left("q", 500)
	s.ends(answered) // 110
	s.used()         // it waits
	left("p", 900)
	left("q", 390)
	s.begin()
	s.fails(tooSlow)
	left("p", 800)
	s.ends(link.Done{Status: 200, Sent: true, First: 1, Complete: true, Usage: models.Usage{In: 300}})
	s.used()
	left("q", 90)
	s.begin()
	s.ends(overloaded) // q has less than the call may use
	s.stands()
	s.used()
	left("p", 800)
	left("q", 90)
}
