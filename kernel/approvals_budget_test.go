package kernel

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/ledger"
)

// spending is a rig whose run asks people for more of its budgets.
func spending(t *testing.T, budgets ...string) (*rig, <-chan api.Standing) {
	t.Helper()
	r := newRig(t, agent.Kernel{Socket: true, Grants: []string{"tool:fetch"}, Budgets: budgets, AtEnd: "pause", Asks: []string{agent.AskBudget}})
	standings := r.attach(false)
	<-standings
	return r, standings
}

// asksForMore asks as the supervisor of a paused run does.
func (r *rig) asksForMore() (api.Approval, error) {
	result, err := asks[api.ApprovalResult](r, 0, methods.ApprovalAsk.Name, api.ApprovalAskParams{Run: r.run.Spec.ID, Kind: api.ApproveBudget})
	return result.Approval, err
}

// short makes a reservation that does not fit, so that the run pauses.
func (r *rig) short(dimension string, amount int64) {
	r.t.Helper()
	_, err := r.asAgent(agents.BudgetReserve.Name, api.BudgetReserveParams{Amounts: map[string]int64{dimension: amount}})
	wantCode(r.t, err, api.CodeBudget)
}

// paused reports whether the last of the standings has the run pause.
func paused(standings <-chan api.Standing) (pause bool) {
	for {
		select {
		case now := <-standings:
			pause = slices.ContainsFunc(now.Spent, func(b api.Budget) bool { return b.AtEnd == "pause" })
		default:
			return pause
		}
	}
}

// A yes gives exactly what the question says, by the code of clove budget raise, and lets the run go on. The control is the
// same run before the answer: it is paused.
func TestAYesGivesMoreOfABudget(t *testing.T) {
	t.Parallel()
	r, standings := spending(t, "cost=2usd")
	if asked, err := r.asksForMore(); err == nil {
		t.Errorf("control: nothing is spent, and it asks %+v", asked)
	}
	id, err := r.spend(1_900_000)
	must(t, err)
	must(t, r.Ledger.Settle(r.run, ledger.Settlement{Service: "model", Reservation: id, Used: budget.Amounts{budget.CostMicros: 1_900_000}}))
	_, err = r.spend(300_000)
	wantCode(t, err, api.CodeBudget)
	if !paused(standings) {
		t.Fatal("control: it is not paused")
	}
	asked, err := r.asksForMore()
	must(t, err)
	if b := asked.Budget; b == nil || b.Account != "1000/run:"+string(r.run.Spec.ID) || b.Granted != 2_000_000 || b.Used != 1_900_000 || b.Wanted != 300_000 || b.More != 2_000_000 {
		t.Errorf("%+v", asked.Budget)
	}
	if want := "spend more: 1.9usd of 2usd are spent, and the next call wants 0.3usd; a yes adds 2usd"; asked.What != want || asked.Rule != "cost=2usd" {
		t.Errorf("%q, %q", asked.What, asked.Rule)
	}
	if again, err := r.asksForMore(); err != nil || again.ID != asked.ID {
		t.Errorf("an equal one: %+v, %v", again, err)
	}
	got, err := r.responds(1000, yes(asked))
	must(t, err)
	if got.State != api.ApprovalAllowed || paused(standings) {
		t.Errorf("%+v", got)
	}
	if l := r.line("cost_micros"); *l.Granted != 4_000_000 {
		t.Errorf("%+v", l)
	}
	_, err = r.responds(1000, yes(asked)) // a replay gives nothing
	wantCode(t, err, api.CodeConflict)
	if l := r.line("cost_micros"); *l.Granted != 4_000_000 {
		t.Errorf("behind the replay: %+v", l)
	}
	// The next question names what --budget says again, not twice as much.
	_, err = r.spend(3_000_000)
	wantCode(t, err, api.CodeBudget)
	next, err := r.asksForMore()
	must(t, err)
	if next.ID == asked.ID || next.Budget.More != 2_000_000 {
		t.Errorf("%+v, %+v", next, next.Budget)
	}
}

// A no leaves the run paused, and is not asked again while the budget is the same. More by hand ends the no, and a question
// that waits.
func TestANoLeavesARunPaused(t *testing.T) {
	t.Parallel()
	r, standings := spending(t, "reviews=10")
	r.charge("reviews", 11)
	asked, err := r.asksForMore()
	must(t, err)
	_, err = r.responds(1000, api.ApprovalRespondParams{ID: asked.ID, Digest: asked.Digest, Reason: "enough"})
	must(t, err)
	if again, err := r.asksForMore(); err != nil || again.ID != asked.ID || again.State != api.ApprovalDenied {
		t.Errorf("%+v, %v", again, err)
	}
	if !paused(standings) {
		t.Error("a no lets it go on")
	}
	_, err = r.asUser(1000, methods.BudgetReset.Name, api.BudgetResetParams{RunParams: api.RunParams{Run: string(r.run.Spec.ID)}, Dimensions: []string{"reviews"}})
	must(t, err)
	if paused(standings) {
		t.Error("a reset leaves it paused")
	}
	r.charge("reviews", 11) // the same figures as before
	again, err := r.asksForMore()
	if must(t, err); again.ID == asked.ID || again.State != api.ApprovalWaits {
		t.Errorf("behind the reset: %+v", again)
	}
	answered := make(chan api.Approval, 1)
	go func() {
		result, err := asks[api.ApprovalResult](r, 0, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: again.ID, Answered: true})
		if err != nil {
			t.Error(err)
		}
		answered <- result.Approval
	}()
	_, err = r.asUser(1000, methods.BudgetRaise.Name, api.BudgetRaiseParams{RunParams: api.RunParams{Run: string(r.run.Spec.ID)}, Amounts: map[string]int64{"reviews": 5}})
	must(t, err)
	if got := <-answered; got.State != api.ApprovalGone {
		t.Errorf("%+v", got)
	}
	_, err = r.responds(1000, yes(again))
	wantCode(t, err, api.CodeConflict)
	if l := r.line("reviews"); *l.Granted != 15 {
		t.Errorf("%+v", l)
	}
}

// An answer gives no more than its user may give: a limit of root's is root's. The control is root's own yes.
func TestAYesIsNoMoreThanItsUserMay(t *testing.T) {
	t.Parallel()
	r, standings := spending(t, "reviews=100")
	_, err := r.SetBudget(0, api.BudgetSetParams{Account: "1000", Limits: []string{"reviews=10"}, AtEnd: "pause"})
	must(t, err)
	r.short("reviews", 20)
	asked, err := r.asksForMore()
	must(t, err)
	if asked.Budget.Account != "1000" || asked.Budget.More != 10 || !strings.Contains(asked.What, " in 1000,") {
		t.Errorf("%+v, %+v", asked, asked.Budget)
	}
	_, err = r.responds(1000, yes(asked))
	wantCode(t, err, api.CodeDenied)
	if again, err := r.asksForMore(); err != nil || again.State != api.ApprovalWaits {
		t.Errorf("behind a yes that is refused: %+v, %v", again, err)
	}
	for _, method := range []string{methods.ApprovalRespond.Name, methods.ApprovalAsk.Name} {
		_, err = r.asAgent(method, yes(asked))
		wantCode(t, err, api.CodeMethod)
	}
	if got, err := r.responds(0, yes(asked)); err != nil || got.State != api.ApprovalAllowed || paused(standings) {
		t.Errorf("control: %+v, %v", got, err)
	}
}

// One question is asked about a budget, whichever of its runs asks, and the end of that run lets another one's be asked.
func TestOneQuestionABudget(t *testing.T) {
	t.Parallel()
	r, _ := spending(t, "reviews=100")
	run := newRun(1000, agent.Kernel{Socket: true, Budgets: []string{"reviews=100"}, AtEnd: "pause", Asks: []string{agent.AskBudget}})
	run.Spec.Name = "other"
	other := r.as(run)
	_, err := r.SetBudget(0, api.BudgetSetParams{Account: "1000", Limits: []string{"reviews=10"}, AtEnd: "pause"})
	must(t, err)
	r.short("reviews", 20)
	other.short("reviews", 30)
	var group sync.WaitGroup
	ids := make(chan string, 20)
	for i := range 20 {
		group.Go(func() {
			asked, err := []*rig{r, other}[i%2].asksForMore()
			if err != nil {
				t.Error(err)
			}
			ids <- asked.ID
		})
	}
	group.Wait()
	first := <-ids
	for range 19 {
		if id := <-ids; id != first {
			t.Errorf("questions %s and %s about one budget", first, id)
		}
	}
	asked, err := r.asksForMore()
	must(t, err)
	r.clock.Add(1)
	for _, one := range []*rig{r, other} { // that which has asked
		if one.run.Spec.ID == asked.Run {
			one.ended(agent.RunEnded)
		} else {
			defer func() {
				if again, err := one.asksForMore(); err != nil || again.ID == asked.ID || again.Run != one.run.Spec.ID {
					t.Errorf("behind the end of the first: %+v, %v", again, err)
				}
			}()
		}
	}
}

// A question about a budget survives a restart, has a place beside 32 about connections, ends with the period, and after a
// day is a no. What the agent takes back is not asked again.
func TestAQuestionAboutABudgetLasts(t *testing.T) {
	t.Parallel()
	run := newRun(1000, agent.Kernel{Socket: true, Budgets: []string{"reviews=10", "pages=10/month"}, AtEnd: "pause", Asks: agent.Asks})
	run.Spec.Network = agent.NetworkAllowlist
	r := newRigOf(t, run)
	standings := r.attach(false)
	<-standings
	for i := range 32 {
		_, err := r.asksFor(fmt.Sprintf("h%d.example.com:443", i))
		must(t, err)
	}
	_, err := r.asksFor("one.example.com:443")
	wantCode(t, err, api.CodeBusy) // the control
	r.short("reviews", 11)
	asked, err := r.asksForMore()
	must(t, err)
	r.close()
	r.open()
	standings = r.attach(false)
	<-standings
	if again, err := r.asksForMore(); err != nil || again.ID != asked.ID || again.State != api.ApprovalWaits {
		t.Errorf("%+v, %v", again, err)
	}
	if text, err := r.Asking(r.run.Spec.ID); err != nil || !strings.Contains(text, asked.What) || !strings.HasSuffix(text, "32 more questions") {
		t.Errorf("%q, %v", text, err)
	}
	r.clock.Add(23 * 3600)
	if got, err := r.asksForMore(); err != nil || got.State != api.ApprovalWaits {
		t.Errorf("before its end: %+v, %v", got, err)
	}
	r.clock.Add(3601)
	r.alarm.set(r.engine.Now())
	wait := func(id string) api.Approval {
		result, err := asks[api.ApprovalResult](r, 1000, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: id, Answered: true})
		must(t, err)
		return result.Approval
	}
	if got := wait(asked.ID); got.State != api.ApprovalExpired {
		t.Errorf("%+v", got)
	}
	if again, err := r.asksForMore(); err != nil || again.ID != asked.ID {
		t.Errorf("a question that has expired is asked again: %+v, %v", again, err)
	}
	_, err = r.asUser(1000, methods.BudgetRaise.Name, api.BudgetRaiseParams{RunParams: api.RunParams{Run: string(r.run.Spec.ID)}, Amounts: map[string]int64{"reviews": 5}})
	must(t, err)
	r.short("pages", 11)
	asked, err = r.asksForMore()
	must(t, err)
	_, err = r.asAgent(agents.ApprovalCancel.Name, api.ApprovalCancelParams{ID: asked.ID})
	must(t, err)
	if again, err := r.asksForMore(); err != nil || again.ID != asked.ID || again.State != api.ApprovalGone {
		t.Errorf("what is taken back: %+v, %v", again, err)
	}
	next := r.engine.Now().AddDate(0, 2, 0)
	r.clock.Store(time.Date(next.Year(), next.Month(), 1, 0, 0, 0, 0, time.UTC).Unix() - 3600)
	r.charge("pages", 1) // a month that has an hour left
	r.short("pages", 11)
	late, err := r.asksForMore()
	must(t, err)
	if late.ID == asked.ID || !late.Expires.Equal(late.Budget.Until) || late.Expires.Sub(r.engine.Now()) != time.Hour {
		t.Errorf("%+v, %+v", late, late.Budget)
	}
	r.clock.Add(3600)
	r.alarm.set(r.engine.Now())
	if got := wait(late.ID); got.State != api.ApprovalGone {
		t.Errorf("behind its period: %+v", got)
	}
}

// Each new question and each end of one is an event of its run and is counted, and the number of those that wait is known.
func TestQuestionsAreEventsAndCounted(t *testing.T) {
	t.Parallel()
	r := asking(t)
	var mu sync.Mutex
	var happened, counted []string
	r.close()
	note := func(e agent.RunEvent) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == agent.RunAsked || e.Kind == agent.RunAnswered {
			happened = append(happened, fmt.Sprint(e.ID == r.run.Spec.ID, " ", e.Kind, " ", e.Detail))
		}
	}
	r.note.Store(&note)
	r.open()
	config := r.config
	config.Asked = func(kind api.ApprovalKind, outcome string) {
		mu.Lock()
		defer mu.Unlock()
		counted = append(counted, string(kind)+" "+outcome)
	}
	must(t, r.Kernel.Close())
	r.serve(config)
	<-r.attach(true)
	asked, err := r.asksFor("a.example.com:443")
	must(t, err)
	_, err = r.asksFor("a.example.com:443") // an equal one is none
	must(t, err)
	_, err = r.asksFor("b.example.com:443")
	must(t, err)
	if n, err := r.Counts(nil, nil); err != nil || n.Approvals != 2 {
		t.Errorf("%+v, %v", n, err)
	}
	uid := uint32(1001)
	if n, err := r.Counts(&uid, func(agent.ID) bool { return false }); err != nil || n.Approvals != 0 {
		t.Errorf("of another user: %+v, %v", n, err)
	}
	_, err = r.responds(1000, yes(asked))
	must(t, err)
	r.clock.Add(1)
	r.ended(agent.RunEnded)
	if n, err := r.Counts(nil, nil); err != nil || n.Approvals != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"net asked", "net asked", "net allowed", "net gone"}; !slices.Equal(counted, want) {
		t.Errorf("%q", counted)
	}
	if want := []string{"true asked connect to a.example.com:443", "true asked connect to b.example.com:443", "true answered allowed by user 1000: connect to a.example.com:443"}; !slices.Equal(happened, want) {
		t.Errorf("%q", happened)
	}
}

// An agent that asks and takes back in a loop pushes nothing else out of the list of events.
func TestEventsOfQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	r := asking(t)
	var mu sync.Mutex
	events := map[agent.RunEventKind]int{}
	note := func(e agent.RunEvent) {
		mu.Lock()
		defer mu.Unlock()
		events[e.Kind]++
	}
	r.note.Store(&note)
	<-r.attach(false)
	for i := range 100 {
		asked, err := r.asksFor(fmt.Sprintf("h%d.example.com:443", i))
		must(t, err)
		_, err = r.asAgent(agents.ApprovalCancel.Name, api.ApprovalCancelParams{ID: asked.ID})
		must(t, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if events[agent.RunAsked] == 0 || events[agent.RunAsked] > 25 || events[agent.RunAnswered] == 0 || events[agent.RunAnswered] > 25 {
		t.Errorf("%v", events)
	}
}
