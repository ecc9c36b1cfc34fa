package kernel

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
)

// pair is a giver with grants and a budget, and a receiver, which is below it or beside it.
func pair(t *testing.T, below bool) (giver, receiver *rig) {
	t.Helper()
	run := newRun(1000, agent.Kernel{Grants: []string{"tool:web/*", "tool:mail", "send:reader"}, Budgets: []string{"reviews=100"}, Namespace: "acme"})
	giver = newRigOf(t, run)
	has := agent.Kernel{Grants: []string{"tool:web/*"}, Budgets: []string{"reviews=50"}, Namespace: "acme"}
	other := newRun(1000, has)
	if below {
		other = childOf(run, "reader", has)
	}
	other.Spec.Name = "reader"
	receiver = giver.as(other)
	if !below {
		for _, g := range receiver.grants() {
			_, err := receiver.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: g.ID})
			must(t, err)
		}
	}
	return giver, receiver
}

func (r *rig) handoff(p api.HandoffParams) (api.HandoffResult, error) {
	if p.Task == nil {
		p.Task = json.RawMessage(`"review <it>"`)
	}
	answer, err := r.asAgent(agents.AgentHandoff.Name, p)
	if err != nil {
		return api.HandoffResult{}, err
	}
	return answerOf[api.HandoffResult](r.t)(answer, nil), nil
}

func (r *rig) accept(offer string) (api.AcceptResult, error) {
	answer, err := r.asAgent(agents.AgentAccept.Name, api.AcceptParams{Offer: offer})
	if err != nil {
		return api.AcceptResult{}, err
	}
	return answerOf[api.AcceptResult](r.t)(answer, nil), nil
}

// may reports whether the run's agent may do one thing.
func (r *rig) may(what string) bool {
	r.t.Helper()
	return answerOf[api.GrantCheckResult](r.t)(r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: what})).Allowed
}

// What is handed over is the receiver's and no more the giver's: at once for a run below, for another
// when it accepts. The controls are what each may do before, and what the giver did not hand over.
func TestAHandoffChangesHands(t *testing.T) {
	t.Parallel()
	for _, below := range []bool{true, false} {
		giver, receiver := pair(t, below)
		standings := receiver.attach(false)
		<-standings
		held := giver.grants()
		derived, err := giver.derive(held["tool:web/*"].ID, "tool:web/put", "")
		must(t, err)
		id := giver.reserve("reviews", 40)
		if !giver.may("tool:web/get") || receiver.may("tool:web/get") {
			t.Fatal("control: before the handoff")
		}
		made, err := giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID), Reservation: id, Grants: []api.HandoffGrant{{From: held["tool:web/*"].ID, Grant: "tool:web/get"}}})
		must(t, err)
		if made.Handed != below || receiver.may("tool:web/get") != below || giver.may("tool:web/get") == below {
			t.Errorf("below %t: %+v", below, made)
		}
		var told bool
		for len(standings) > 0 {
			for _, n := range (<-standings).Notices {
				told = told || n.Method == api.NoteOffer
			}
		}
		listed := answerOf[api.OfferListResult](t)(receiver.asAgent(agents.AgentOffers.Name, `{"wait":true}`))
		if !told || len(listed.Offers) != 1 || listed.Offers[0].ID != made.Offer || listed.Offers[0].Amounts["reviews"] != 40 || listed.Offers[0].Handed != below {
			t.Errorf("told %t, %+v", told, listed)
		}
		got, err := receiver.accept(made.Offer)
		must(t, err)
		var task string
		must(t, json.Unmarshal(got.Task, &task))
		if task != "review <it>" || got.From != giver.run.Spec.ID || len(got.Grants) != 1 || got.Grants[0].Parent != "" || got.Reservation == "" {
			t.Errorf("%+v", got)
		}
		if !receiver.may("tool:web/get") || receiver.may("tool:web/put") || giver.may("tool:web/get") || giver.may("tool:web/put") || !giver.may("tool:mail") {
			t.Errorf("below %t: the giver has %+v, the receiver %+v", below, giver.grants(), receiver.grants())
		}
		for _, gone := range []string{held["tool:web/*"].ID, derived.ID} {
			_, err := giver.derive(gone, "tool:web/get", "")
			wantCode(t, err, api.CodeNotFound)
		}
		for method, params := range map[string]any{
			agents.BudgetRelease.Name: api.BudgetReleaseParams{Reservation: id},
			agents.BudgetReserve.Name: `{"amounts":{"reviews":61}}`, // what was handed over is not free again
		} {
			if _, err := giver.asAgent(method, params); err == nil {
				t.Errorf("below %t: the giver may %s", below, method)
			}
		}
		if line := receiver.own("reviews"); line.Reserved != 40 {
			t.Errorf("%+v", line)
		}
		_, err = receiver.asAgent(agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: got.Reservation, Amounts: map[string]int64{"reviews": 45}})
		must(t, err)
		if line, want := giver.own("reviews"), int64(45); line.Reserved != 0 || below && line.Used != want || !below && line.Used != 40 {
			t.Errorf("below %t: the giver %+v", below, line)
		}
		sides := map[agent.ID]int{}
		for _, e := range giver.entries() {
			if strings.HasPrefix(e.Method, "agent.") {
				sides[e.Run]++
			}
		}
		if sides[giver.run.Spec.ID] != 2 || sides[receiver.run.Spec.ID] != 2 {
			t.Errorf("entries: %v", sides)
		}
	}
}

// What an agent may not hand over is refused, and nothing changes. The control of each is the same
// handoff of a part that it may.
func TestWhatIsNotHandedOver(t *testing.T) {
	t.Parallel()
	for _, below := range []bool{true, false} {
		giver, receiver := pair(t, below)
		held := giver.grants()
		to, web := string(receiver.run.Spec.ID), held["tool:web/*"].ID
		stranger := giver.as(newRun(1000, agent.Kernel{Grants: []string{"tool:mail"}, Namespace: "acme"}))
		part := func(from, text string) []api.HandoffGrant { return []api.HandoffGrant{{From: from, Grant: text}} }
		one := int64(1)
		for name, row := range map[string]struct {
			p    api.HandoffParams
			code api.Code
		}{
			"a grant of another":         {api.HandoffParams{Grants: part(stranger.grants()["tool:mail"].ID, "tool:mail")}, api.CodeNotFound},
			"wider than held":            {api.HandoffParams{Grants: part(web, "tool:*")}, api.CodeDenied},
			"wider than the manifest":    {api.HandoffParams{Grants: part(held["tool:mail"].ID, "tool:mail")}, api.CodeDenied},
			"the same twice":             {api.HandoffParams{Grants: append(part(web, "tool:web/get"), part(web, "tool:web/put")...)}, api.CodeNotFound},
			"a reservation of another":   {api.HandoffParams{Reservation: receiver.reserve("reviews", 1)}, api.CodeNotFound},
			"more than the other has":    {api.HandoffParams{Reservation: giver.reserve("reviews", 60)}, api.CodeBudget},
			"a uses of a number":         {api.HandoffParams{Grants: []api.HandoffGrant{{From: web, Grant: "nonsense", Uses: &one}}}, api.CodeParams},
			"no task":                    {api.HandoffParams{Task: json.RawMessage("null")}, api.CodeParams},
			"a task that is too large":   {api.HandoffParams{Task: json.RawMessage(`"` + strings.Repeat("<", 9<<10) + `"`)}, api.CodeTooLarge},
			"for too long":               {api.HandoffParams{Expires: time.Unix(giver.clock.Load(), 0).Add(25 * time.Hour)}, api.CodeParams},
			"to itself":                  {api.HandoffParams{To: string(giver.run.Spec.ID)}, api.CodeNotFound},
			"to a run without a grant":   {api.HandoffParams{To: string(stranger.run.Spec.ID)}, api.CodeNotFound},
			"to a run that there is not": {api.HandoffParams{To: string(agent.NewID())}, api.CodeNotFound},
		} {
			if row.p.To == "" {
				row.p.To = to
			}
			made, err := giver.handoff(row.p)
			if err == nil && !made.Handed {
				_, err = receiver.accept(made.Offer) // it is decided when it changes hands
			}
			if wantCode(t, err, row.code); err == nil {
				t.Errorf("below %t, %s: %+v", below, name, made)
			}
		}
		if len(giver.grants()) != len(held) || len(receiver.grants()) != 0 && !below {
			t.Errorf("%+v, %+v", giver.grants(), receiver.grants())
		}
		made, err := giver.handoff(api.HandoffParams{To: to, Grants: part(web, "tool:web/get")})
		must(t, err)
		_, err = receiver.accept(made.Offer)
		must(t, err)
	}
}

// A giver keeps nothing by which it could use what it hands over. The control hands over the wider one.
func TestAGiverKeepsNothingOfIt(t *testing.T) {
	t.Parallel()
	giver, receiver := pair(t, true)
	web := giver.grants()["tool:web/*"].ID
	derived, err := giver.derive(web, "tool:web/get", "")
	must(t, err)
	_, err = giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID), Grants: []api.HandoffGrant{{From: derived.ID, Grant: "tool:web/get"}}})
	wantCode(t, err, api.CodeConflict)
	wide := giver.give("tool:*/get")
	_, err = giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID), Grants: []api.HandoffGrant{{From: web, Grant: "tool:web/*"}}})
	wantCode(t, err, api.CodeConflict)
	if !giver.may("tool:web/get") || receiver.may("tool:web/put") {
		t.Error("a refused handoff has moved something")
	}
	_, err = giver.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: wide.ID})
	must(t, err)
	_, err = giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID), Grants: []api.HandoffGrant{{From: web, Grant: "tool:web/p*"}}})
	must(t, err)
}

// An offer is accepted by its receiver, once, until it expires, and while what it gives is the giver's
// and its grant to send stands. The control is the first of 64 who accept at once.
func TestWhoAcceptsAnOffer(t *testing.T) {
	t.Parallel()
	giver, receiver := pair(t, false)
	other := giver.as(newRun(1000, agent.Kernel{Grants: []string{"tool:web/*"}, Namespace: "acme"}))
	offer := func(p api.HandoffParams) string {
		t.Helper()
		p.To = string(receiver.run.Spec.ID)
		made, err := giver.handoff(p)
		must(t, err)
		return made.Offer
	}
	first := offer(api.HandoffParams{Reservation: giver.reserve("reviews", 5)})
	_, err := other.accept(first)
	wantCode(t, err, api.CodeNotFound)
	_, err = giver.accept(first)
	wantCode(t, err, api.CodeNotFound)
	var all sync.WaitGroup
	var got atomic.Int64
	for range 64 {
		all.Go(func() {
			if _, err := receiver.accept(first); err == nil {
				got.Add(1)
			} else {
				wantCode(t, err, api.CodeNotFound)
			}
		})
	}
	all.Wait()
	if line := receiver.own("reviews"); got.Load() != 1 || line.Reserved != 5 {
		t.Errorf("%d accepted, %+v", got.Load(), line)
	}
	web := giver.grants()["tool:web/*"].ID
	revoked := offer(api.HandoffParams{Grants: []api.HandoffGrant{{From: web, Grant: "tool:web/get"}}})
	_, err = giver.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: web})
	must(t, err)
	_, err = receiver.accept(revoked)
	wantCode(t, err, api.CodeNotFound)
	settled := giver.reserve("reviews", 5)
	late := offer(api.HandoffParams{Reservation: settled})
	_, err = giver.asAgent(agents.BudgetRelease.Name, api.BudgetReleaseParams{Reservation: settled})
	must(t, err)
	_, err = receiver.accept(late)
	wantCode(t, err, api.CodeNotFound)
	expires, silent := offer(api.HandoffParams{Expires: time.Unix(giver.clock.Load(), 0).Add(time.Minute)}), offer(api.HandoffParams{})
	giver.clock.Add(60)
	_, err = receiver.accept(expires)
	wantCode(t, err, api.CodeNotFound)
	_, err = giver.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: giver.grants()["send:reader"].ID})
	must(t, err)
	_, err = receiver.accept(silent)
	wantCode(t, err, api.CodeDenied)
	_, err = giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID)})
	wantCode(t, err, api.CodeNotFound)
}

// An offer that is withdrawn is not accepted, and what goes with it stays the giver's; what has changed
// hands already is not taken back. The controls are other runs, and an offer that was accepted.
func TestAnOfferIsWithdrawn(t *testing.T) {
	t.Parallel()
	for _, below := range []bool{true, false} {
		giver, receiver := pair(t, below)
		withdraw := func(r *rig, offer string) api.Code {
			t.Helper()
			_, err := r.asAgent(agents.AgentWithdraw.Name, api.WithdrawParams{Offer: offer})
			if err == nil {
				return 0
			}
			return api.ErrorOf(err).Code
		}
		offer := func(p api.HandoffParams) string {
			t.Helper()
			p.To = "reader"
			made, err := giver.handoff(p)
			must(t, err)
			return made.Offer
		}
		task := offer(api.HandoffParams{})
		if code := withdraw(receiver, task); code != api.CodeNotFound {
			t.Errorf("below %t: the receiver withdraws it: %d", below, code)
		}
		if code := withdraw(giver, task); code != 0 {
			t.Errorf("below %t: %d", below, code)
		}
		_, err := receiver.accept(task)
		wantCode(t, err, api.CodeNotFound)
		if code := withdraw(giver, task); code != api.CodeNotFound {
			t.Errorf("below %t: withdrawn twice: %d", below, code)
		}
		id := giver.reserve("reviews", 40)
		more := offer(api.HandoffParams{Reservation: id, Grants: []api.HandoffGrant{{From: giver.grants()["tool:web/*"].ID, Grant: "tool:web/get"}}})
		if code, want := withdraw(giver, more), map[bool]api.Code{true: api.CodeConflict, false: 0}[below]; code != want {
			t.Errorf("below %t: with a grant: %d, want %d", below, code, want)
		}
		_, err = receiver.accept(more)
		if (err == nil) != below || receiver.may("tool:web/get") != below || giver.may("tool:web/get") == below {
			t.Errorf("below %t: accepted: %v", below, err)
		}
		if below {
			continue
		}
		_, err = giver.asAgent(agents.BudgetRelease.Name, api.BudgetReleaseParams{Reservation: id})
		must(t, err)
		taken := offer(api.HandoffParams{})
		_, err = receiver.accept(taken)
		must(t, err)
		if code := withdraw(giver, taken); code != api.CodeNotFound {
			t.Errorf("an accepted one: %d", code)
		}
	}
}

// A task is given to a name as mail is sent to it: to the run that holds it, to a child by the name that its
// parent gave it, and to the parent, where a grant of kind send covers the name that was said. The controls
// are names that no grant covers.
func TestATaskIsGivenByName(t *testing.T) {
	t.Parallel()
	giver := newRig(t, agent.Kernel{Grants: []string{"send:critic", "send:reader"}, Namespace: "acme"})
	holder := newRun(1000, agent.Kernel{Grants: []string{"name:critic", "name:judge"}, Namespace: "acme"})
	holder.Spec.Name = "reader-1"
	other := giver.as(holder)
	for _, name := range []string{"critic", "judge"} {
		_, err := other.asAgent(agents.NameRegister.Name, api.NameRegisterParams{Name: name})
		must(t, err)
	}
	for name, want := range map[string]api.Code{"critic": 0, "judge": api.CodeNotFound, "reader-1": api.CodeNotFound, "reader": api.CodeNotFound, string(holder.Spec.ID): api.CodeNotFound} {
		_, err := giver.handoff(api.HandoffParams{To: name})
		if (err == nil) != (want == 0) || err != nil && api.ErrorOf(err).Code != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string]api.Code{"send:parent": 0, "send:child": api.CodeNotFound} {
		run := newRun(1000, agent.Kernel{Grants: []string{"send:*"}, Namespace: "acme"})
		above := giver.as(run)
		child, err := above.start(childOf(run, "child", agent.Kernel{Grants: []string{text}, Namespace: "acme"}))
		must(t, err)
		_, err = child.handoff(api.HandoffParams{To: "parent"})
		if (err == nil) != (want == 0) || err != nil && api.ErrorOf(err).Code != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A receiver beside the giver spends what was handed over, and no more of the giver's budget.
func TestAReceiverSpendsOnlyWhatItWasHanded(t *testing.T) {
	t.Parallel()
	giver, _ := pair(t, false)
	free := newRun(1000, agent.Kernel{Socket: true, Namespace: "acme"})
	free.Spec.Name = "reader"
	receiver := giver.as(free)
	_, err := giver.SetBudget(0, api.BudgetSetParams{Account: "1000", Limits: []string{"reviews=1000"}})
	must(t, err)
	made, err := giver.handoff(api.HandoffParams{To: string(free.Spec.ID), Reservation: giver.reserve("reviews", 10)})
	must(t, err)
	got, err := receiver.accept(made.Offer)
	must(t, err)
	_, err = receiver.asAgent(agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: got.Reservation, Amounts: map[string]int64{"reviews": 500}})
	must(t, err)
	if line := giver.own("reviews"); line.Used != 10 || line.Reserved != 0 {
		t.Errorf("the giver: %+v", line)
	}
	if line := receiver.own(budget.Dimension("reviews")); line.Used != 500 { // control
		t.Errorf("the receiver: %+v", line)
	}
}

// An agent waits for an offer, and its offers are bounded; expired ones make room.
func TestOffersAreWaitedForAndBounded(t *testing.T) {
	t.Parallel()
	giver, receiver := pair(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answered := make(chan error, 1)
	var got api.OfferListResult
	receiver.engine.Begin(ctx, service.Caller{Run: receiver.run, Agent: true, UID: 1000}, service.Request{Method: agents.AgentOffers.Name, Text: json.RawMessage(`{"wait":true}`)},
		func(text json.RawMessage, err error) {
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			answered <- err
		})
	if len(answered) != 0 {
		t.Fatal("it waits for nothing")
	}
	made, err := giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID)})
	must(t, err)
	if must(t, <-answered); len(got.Offers) != 1 || got.Offers[0].ID != made.Offer {
		t.Errorf("%+v", got)
	}
	for range 31 {
		_, err = giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID)})
		must(t, err)
	}
	_, err = giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID)})
	wantCode(t, err, api.CodeBusy)
	seen, after := 0, ""
	for {
		part := answerOf[api.OfferListResult](t)(receiver.asAgent(agents.AgentOffers.Name, api.OfferListParams{After: after}))
		if seen, after = seen+len(part.Offers), part.Next; after == "" {
			break
		}
	}
	if seen != 32 {
		t.Errorf("%d offers are listed", seen)
	}
	giver.clock.Add(3600)
	_, err = giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID)})
	must(t, err)
}

// A net grant that names one of the host's own addresses is handed over to none. The control is another
// address.
func TestTheHostsAddressIsNotHandedOver(t *testing.T) {
	t.Parallel()
	run := newRun(0, agent.Kernel{Grants: []string{"net:10.9.9.9:80", "net:10.9.9.8:80"}})
	giver := newRigOf(t, run)
	receiver := giver.as(childOf(run, "reader", agent.Kernel{Grants: []string{"net:10.9.9.9:80", "net:10.9.9.8:80"}}))
	for text, id := range map[string]string{"net:10.9.9.9:80": giver.grants()["net:10.9.9.9:80"].ID, "net:10.9.9.8:80": giver.grants()["net:10.9.9.8:80"].ID} {
		_, err := giver.handoff(api.HandoffParams{To: string(receiver.run.Spec.ID), Grants: []api.HandoffGrant{{From: id, Grant: text}}})
		if text == "net:10.9.9.9:80" {
			wantCode(t, err, api.CodeDenied)
		} else {
			must(t, err)
		}
	}
}
