package kernel

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// named is a run of a user's and a namespace that may have names.
func (r *rig) named(uid uint32, namespace, name string) *rig {
	r.t.Helper()
	run := newRun(uid, agent.Kernel{Grants: []string{"name:critic*", "send:critic*", "name:topic/news", "send:topic/*"}, Namespace: namespace})
	run.Spec.Name = name
	return r.as(run)
}

func (r *rig) register(name string, tags ...string) (api.Name, error) {
	text, err := r.asAgent(agents.NameRegister.Name, api.NameRegisterParams{Name: name, Tags: tags})
	var result api.NameResult
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result.Name, err
}

// holders are the names of the runs that have a name, as a run sees it; nil: it sees none.
func (r *rig) holders(name string) (runs []string) {
	text, err := r.asAgent(agents.NameLookup.Name, api.NameLookupParams{Name: name})
	if err != nil {
		wantCode(r.t, err, api.CodeNotFound)
		return nil
	}
	for _, h := range answerOf[api.NameResult](r.t)(text, nil).Name.Holders {
		runs = append(runs, h.Name)
	}
	return runs
}

func (r *rig) ended(kind agent.RunEventKind) {
	r.t.Helper()
	run := r.run
	run.State = agent.StateEnded
	r.runs.Store(run.Spec.ID, run)
	must(r.t, r.Happened(agent.RunEvent{Time: r.config.Clock(), Kind: kind, ID: run.Spec.ID, Name: run.Spec.Name, Owner: run.Owner}, run.Spec.Kernel.Namespace))
}

// A name is held by runs of one owner and namespace until it is released or they end. For others there
// is none, with the same answer as for a name that does not exist. The control is a run beside it.
func TestNamesOfANamespace(t *testing.T) {
	t.Parallel()
	one := newRig(t, agent.Kernel{Grants: []string{"tool:x"}, Namespace: "acme"}).named(1000, "acme", "one")
	two := one.named(1000, "acme", "two")
	for _, r := range []*rig{one, two} {
		_, err := r.register("critic", "review", r.run.Spec.Name)
		must(t, err)
	}
	_, err := two.register("critic/two")
	must(t, err)
	if all := two.holders("critic"); !slices.Equal(all, []string{"one", "two"}) {
		t.Fatal(all)
	}
	for what, other := range map[string]*rig{"namespace": one.named(1000, "other", "three"), "namespace below": one.named(1000, "acme/below", "four"), "owner": one.named(2000, "acme", "five")} {
		_, missing := other.asAgent(agents.NameLookup.Name, api.NameLookupParams{Name: "criticx"})
		_, hidden := other.asAgent(agents.NameLookup.Name, api.NameLookupParams{Name: "critic"})
		wantCode(t, hidden, api.CodeNotFound)
		if a, b := api.ErrorOf(missing), api.ErrorOf(hidden); a.Data != b.Data {
			t.Errorf("another %s: %+v, %+v", what, a, b)
		}
		if all := answerOf[api.NameListResult](t)(other.asAgent(agents.NameList.Name, api.NameListParams{})); len(all.Names) != 0 {
			t.Errorf("another %s: %+v", what, all)
		}
		_, err := other.asAgent(agents.NameRelease.Name, api.NameParams{Name: "critic"})
		wantCode(t, err, api.CodeNotFound)
	}
	for chosen, want := range map[api.NameListParams]int{{}: 2, {Prefix: "critic/"}: 1, {Tag: "review"}: 1, {Tag: "one"}: 1, {Tag: "none"}: 0, {After: "critic"}: 1, {After: "critic/two"}: 0} {
		if all := answerOf[api.NameListResult](t)(two.asAgent(agents.NameList.Name, chosen)); len(all.Names) != want {
			t.Errorf("%+v: %+v", chosen, all)
		}
	}
	_, err = two.asAgent(agents.NameRelease.Name, api.NameParams{Name: "critic"})
	must(t, err)
	if all := two.holders("critic"); !slices.Equal(all, []string{"one"}) {
		t.Error(all)
	}
	two.ended(agent.RunEnded)
	if all := one.holders("critic/two"); all != nil {
		t.Error(all)
	}
	one.ended(agent.RunRemoved)
	all, err := asks[api.NameListResult](one, 0, methods.NameQuery.Name, api.NameQueryParams{})
	if must(t, err); len(all.Names) != 0 {
		t.Errorf("left: %+v", all)
	}
}

// What may not be a name, and what no grant covers, is refused.
func TestNamesThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"tool:x"}}).named(1000, "", "one")
	_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "name:*"})
	must(t, err)
	for name, code := range map[string]api.Code{"": api.CodeParams, "parent": api.CodeParams, "*": api.CodeDenied, "crit*": api.CodeDenied, "a b": api.CodeParams, string(r.run.Spec.ID): api.CodeParams, "topic/news": api.CodeParams} {
		if _, err := r.register(name); err == nil || api.ErrorOf(err).Code != code {
			t.Errorf("%q: %v", name, err)
		}
	}
	_, err = r.register("critic", "no tag")
	wantCode(t, err, api.CodeParams)
	_, err = r.register("any")
	must(t, err) // the control
	other := r.named(1000, "", "two")
	_, err = other.register("any")
	wantCode(t, err, api.CodeDenied)
}

// A user reserves, sees and removes names of its own, and root all.
func TestUsersOfNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"tool:x"}}).named(1000, "", "one")
	reserved, err := asks[api.NameResult](r, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "critic", Tags: []string{"kept"}})
	must(t, err)
	if n := reserved.Name; !n.Reserved || n.Owner != 1000 || len(n.Holders) != 0 {
		t.Errorf("%+v", n)
	}
	if all := r.holders("critic"); all != nil {
		t.Error(all)
	}
	_, err = r.register("critic")
	must(t, err)
	uid := uint32(1000)
	for by, want := range map[uint32]int{0: 1, 1000: 1, 2000: 0} {
		all, err := asks[api.NameListResult](r, by, methods.NameQuery.Name, api.NameQueryParams{Tag: "kept"})
		if must(t, err); len(all.Names) != want {
			t.Errorf("user %d sees %+v", by, all)
		}
	}
	_, err = asks[api.NameListResult](r, 2000, methods.NameQuery.Name, api.NameQueryParams{Owner: &uid})
	wantCode(t, err, api.CodeDenied)
	_, err = asks[api.Nothing](r, 2000, methods.NameRemove.Name, api.NameRemoveParams{Name: "critic"})
	wantCode(t, err, api.CodeNotFound)
	_, err = asks[api.Nothing](r, 2000, methods.NameRemove.Name, api.NameRemoveParams{Name: "critic", Owner: &uid})
	wantCode(t, err, api.CodeDenied)
	_, err = asks[api.NameResult](r, 2000, methods.NameReserve.Name, api.NameReserveParams{Name: "critic", Owner: &uid})
	wantCode(t, err, api.CodeDenied)
	_, err = asks[api.Nothing](r, 0, methods.NameRemove.Name, api.NameRemoveParams{Name: "critic", Owner: &uid})
	must(t, err)
	if all := r.holders("critic"); all != nil {
		t.Error(all)
	}
}

// A run's end that is reported late takes no name that the run has registered since.
func TestALateEndTakesNoNewName(t *testing.T) {
	t.Parallel()
	base := newRig(t, agent.Kernel{Grants: []string{"tool:x"}})
	r, end := base.named(1000, "", "one"), base.config.Clock()
	base.clock.Add(5)
	_, err := r.register("critic")
	must(t, err)
	happened := func(at time.Time) {
		must(t, r.Happened(agent.RunEvent{Time: at, Kind: agent.RunEnded, ID: r.run.Spec.ID, Name: "one", Owner: r.run.Owner}, ""))
	}
	if happened(end); r.holders("critic") == nil {
		t.Error("the name is gone")
	}
	if happened(r.config.Clock()); r.holders("critic") != nil {
		t.Error("the name is left")
	}
}

// The mail of a run that has ended goes to another holder, also to one that registers before the end is
// reported. The control is before the report.
func TestARegistrationBeforeALateEnd(t *testing.T) {
	t.Parallel()
	sender := newRig(t, agent.Kernel{Grants: []string{"send:critic"}})
	one, two := sender.named(1000, "", "one"), sender.named(1000, "", "two")
	_, err := one.register("critic")
	must(t, err)
	must(t, sender.tell("critic", `1`))
	run := one.run
	run.State = agent.StateEnded
	one.runs.Store(run.Spec.ID, run)
	_, err = two.register("critic")
	must(t, err)
	if all := two.inbox(); all != nil {
		t.Errorf("%q before the report", all)
	}
	if one.ended(agent.RunEnded); !slices.Equal(two.inbox(), []string{"1"}) || !slices.Equal(two.holders("critic"), []string{"two"}) {
		t.Errorf("%q, %q", two.inbox(), two.holders("critic"))
	}
}

func (r *rig) tell(to, body string) error {
	_, err := r.asAgent(agents.MailSend.Name, api.MailSendParams{To: to, Body: json.RawMessage(body)})
	return err
}

// inbox are the bodies of what a run has not acknowledged.
func (r *rig) inbox() []string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	text, err := r.Call(ctx, service.Caller{Run: r.run, Agent: true, UID: r.run.Owner.UID}, service.Request{Method: agents.MailReceive.Name, Text: encode(api.MailReceiveParams{Most: 64})})
	if err != nil {
		wantCode(r.t, err, api.CodeCancelled)
		return nil
	}
	return bodies(answerOf[api.MailReceiveResult](r.t)(text, nil).Messages)
}

// Runs that hold one name take turns, also after a restart of cloved. Each message comes to one of them. The
// turn of a run whose mailbox is full goes to the next.
func TestMailToANameTakesTurns(t *testing.T) {
	t.Parallel()
	sender := newRig(t, agent.Kernel{Grants: []string{"send:critic"}})
	one, two := sender.named(1000, "", "one"), sender.named(1000, "", "two")
	wantCode(t, sender.tell("critic", `0`), api.CodeNotFound) // the control: without a holder
	for _, r := range []*rig{one, two} {
		_, err := r.register("critic")
		must(t, err)
	}
	must(t, sender.tell("critic", `1`))
	for _, body := range []string{`2`, `3`, `4`} {
		must(t, sender.tell("critic", body))
	}
	if a, b := one.inbox(), two.inbox(); !slices.Equal(a, []string{"1", "3"}) || !slices.Equal(b, []string{"2", "4"}) {
		t.Fatal(a, b)
	}
	must(t, sender.engine.Update("test", func(tx *store.KernelTx) error {
		box, err := lease.Boxes.Get(tx, lease.RunBox(1000, one.run.Spec.ID).ID())
		must(t, err)
		for box.Messages < lease.Usual {
			must(t, lease.Put(tx, box.Of, &lease.Message{Mail: api.Mail{Body: json.RawMessage(`0`)}}))
			box.Messages++
		}
		return nil
	}))
	must(t, sender.tell("critic", `5`))
	must(t, sender.tell("critic", `6`))
	if b := two.inbox(); !slices.Equal(b, []string{"2", "4", "5", "6"}) {
		t.Error(b)
	}
	_, err := two.asAgent(agents.NameRelease.Name, api.NameParams{Name: "critic"})
	must(t, err)
	wantCode(t, sender.tell("critic", `7`), api.CodeBusy)
}

// Mail to a reserved name waits for a run that registers it, and an answer finds the question although it
// was moved. The controls are a name that is not reserved, and one of another namespace and owner.
func TestMailWaitsForAReservedName(t *testing.T) {
	t.Parallel()
	sender := newRig(t, agent.Kernel{Grants: []string{"send:*"}})
	for uid, namespace := range map[uint32]string{1000: "other", 2000: ""} {
		_, err := asks[api.NameResult](sender, uid, methods.NameReserve.Name, api.NameReserveParams{Name: "critic", Namespace: namespace})
		must(t, err)
	}
	wantCode(t, sender.tell("critic", `0`), api.CodeNotFound)
	_, err := asks[api.NameResult](sender, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "critic"})
	must(t, err)
	wantCode(t, sender.tell("critic/x", `0`), api.CodeNotFound)
	asked := answerOf[api.MailSendResult](t)(sender.asAgent(agents.MailSend.Name, api.MailSendParams{To: "critic", Body: json.RawMessage(`1`), Asks: true}))
	must(t, sender.tell("critic", `2`))
	_, err = asks[api.Nothing](sender, 1000, methods.NameRemove.Name, api.NameRemoveParams{Name: "critic"})
	wantCode(t, err, api.CodeConflict)
	one := sender.named(1000, "", "one")
	if all := one.inbox(); all != nil {
		t.Fatal(all)
	}
	_, err = one.register("critic")
	must(t, err)
	if all := one.inbox(); !slices.Equal(all, []string{"1", "2"}) {
		t.Fatal(all)
	}
	first := answerOf[api.MailReceiveResult](t)(one.asAgent(agents.MailReceive.Name, api.MailReceiveParams{})).Messages[0]
	_, err = one.asAgent(agents.MailReply.Name, api.MailReplyParams{ID: first.ID, Body: json.RawMessage(`"yes"`), Ack: true})
	must(t, err)
	if m := answerOf[api.MailAnswerResult](t)(sender.asAgent(agents.MailAnswer.Name, api.MailAnswerParams{ID: asked.ID})).Message; string(m.Body) != `"yes"` {
		t.Errorf("%+v", m)
	}
	// What it has not acknowledged when it ends goes back, and to the next one.
	one.ended(agent.RunEnded)
	two, three := sender.named(1000, "", "two"), sender.named(1000, "", "three")
	_, err = two.register("critic")
	must(t, err)
	must(t, sender.tell(string(two.run.Spec.ID), `"own"`))
	_, err = three.register("critic")
	must(t, err)
	two.ended(agent.RunRemoved)
	if all := three.inbox(); !slices.Equal(all, []string{"2"}) {
		t.Error(all)
	}
}

// A run is found by its name and id from its own namespace alone, with the answer of one that does not exist.
func TestMailReachesNoOtherNamespace(t *testing.T) {
	t.Parallel()
	sender := newRig(t, agent.Kernel{Grants: []string{"send:*"}, Namespace: "acme"})
	_, missing := sender.asAgent(agents.MailSend.Name, api.MailSendParams{To: "none", Body: json.RawMessage(`1`)})
	for _, r := range []*rig{sender.named(1000, "", "one"), sender.named(1000, "acme/below", "two"), sender.named(2000, "acme", "three")} {
		for _, to := range []string{r.run.Spec.Name, string(r.run.Spec.ID)} {
			_, err := sender.asAgent(agents.MailSend.Name, api.MailSendParams{To: to, Body: json.RawMessage(`1`)})
			if wantCode(t, err, api.CodeNotFound); api.ErrorOf(err).Data != api.ErrorOf(missing).Data {
				t.Errorf("%+v, %+v", err, missing)
			}
		}
		if all := r.inbox(); all != nil {
			t.Error(all)
		}
	}
	beside := sender.named(1000, "acme", "four")
	must(t, sender.tell("four", `1`)) // the control
	if all := beside.inbox(); len(all) != 1 {
		t.Error(all)
	}
}
