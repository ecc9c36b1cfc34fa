package kernel

import (
	"clove.run/clove/audit"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
)

// tricks are texts with which an agent tries to get more than its grant allows. The controls
// are narrower, whatever they look like, and become the text beside them.
var tricks = []struct {
	grant    string
	controls map[string]string
	tricks   []string
}{
	{"net:*.example.com:443", map[string]string{"net:api.example.com:443": "net:api.example.com:443", "net:API.Example.COM.:443": "net:api.example.com:443", "net:*.api.example.com:443": "net:*.api.example.com:443"}, []string{
		"net:example.com:443", "net:example.com.:443", "net:*.com:443", "net:*:443", "net:badexample.com:443", "net:api.example.com.evil.test:443", "net:api.example.com",
		"net:api.example.com:80", "net:api.example.com:442-443", "net:api.example.com:*", "net:api.example.com:0443-0444", "net:udp://api.example.com:443", "net:api.exаmple.com:443",
		"net:api。example.com:443", "net:api.example.com\u200b:443", "net:api.example.com%00.evil.test:443", "net:user@api.example.com:443", "net:api.example.com/../evil.test:443", "net:api..example.com:443",
		"net:93.184.216.34:443", "net:public:443", "net:xn--.example.com.evil.test:443"}},
	{"net:10.1.0.0/16:443", map[string]string{"net:10.1.255.255:443": "net:10.1.255.255:443", "net:10.1.128.0/17:443": "net:10.1.128.0/17:443", "net:[::ffff:10.1.2.3]:443": "net:10.1.2.3:443"}, []string{
		"net:10.1.0.0/15:443", "net:10.0.0.0/8:443", "net:10.2.0.0:443", "net:10.0.255.255:443", "net:10.1.0.0/016:443", "net:10.1.2.3/8:443", "net:[::ffff:10.2.0.0]:443", "net:[::ffff:0:0]/96:443",
		"net:[::ffff:10.1.0.0]/100:443", "net:010.1.2.3:443", "net:10.1.2.03:443", "net:012.1.2.3:443", "net:167838211:443", "net:0xa010203:443", "net:10.1.515:443", "net:[64:ff9b::a02:203]:443", "net:[2002:a02:203::1]:443",
		"net:10.1.2.3:1-443", "net:10.1.2.3:65979", "net:udp://10.1.2.3:443", "net:private:443", "net:0.0.0.0/0:443", "net:10.1.2.3", "net:metadata:443", "net:host:443", "net:api.example.com:443"}},
	{"tool:web/*", map[string]string{"tool:web/get": "tool:web/get", "tool:web/a/*": "tool:web/a/*", "tool:web/*": "tool:web/*"}, []string{
		"tool:web", "tool:web*", "tool:webs/get", "tool:Web/get", "tool:*", "tool:*/get", "tool:*web/get", "tool:web/../shell", "tool:web/./../shell", "tool:web//get", "tool:wеb/get", "tool:web\u2215get",
		"tool:web/get\u200b", "tool:web/get ", "tool:web/get\n", "tool:web%2fget", "tool:web/get:rw", "tool:web/**", "tool:\x00web/get", "model:web/get", "spawn:web/get"}},
	{"state:/notes:ro", map[string]string{"state:/notes/a:ro": "state:/notes/a:ro", "state:/notes/": "state:/notes:ro", "state:/notes/..a": "state:/notes/..a:ro"}, []string{
		"state:/notes:rw", "state:/notes/a:rw", "state:/notes/a:RW", "state:/notes/a:ro:rw", "state:/notes2:ro", "state:/note:ro", "state:/Notes/a:ro", "state:/:ro", "state:/notes/../etc:ro", "state:/notes/..:ro",
		"state:/notes/a/../../etc:ro", "state:/notes/./a:ro", "state://notes/a:ro", "state:/notes//a:ro", "state:/notes%2f..%2fetc:ro", "state:/nоtes/a:ro", "state:/notes\u202e/a:ro", "state:/notes/*:ro", "state:notes/a:ro", "file:/notes/a:ro"}},
	{"audit:acme", map[string]string{"audit:acme/research": "audit:acme/research"}, []string{
		"audit:/", "audit:acme2", "audit:Acme", "audit:acme/..", "audit:acme/../other", "audit:/acme", "audit:acme/*", "audit:acmе"}},
}

// However an agent writes what it asks for, it gets nothing that its grant does not allow,
// neither as a grant nor as the answer to a check.
func TestEscalationByText(t *testing.T) {
	t.Parallel()
	for _, row := range tricks {
		r := newRig(t, agent.Kernel{Grants: []string{row.grant}, Socket: true})
		from := r.grants()[row.grant].ID
		derive := func(text string) (json.RawMessage, error) {
			return r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: from, Grant: text})
		}
		for text, want := range row.controls {
			if got := answerOf[api.GrantResult](t)(derive(text)).Grant; got.Grant != want {
				t.Errorf("control: %s became %s, want %s", text, got.Grant, want)
			}
		}
		before := len(r.grants())
		for _, text := range row.tricks {
			got, err := derive(text)
			if err == nil {
				t.Errorf("%s passes on %q: %s", row.grant, text, got)
				continue
			}
			if code := api.ErrorOf(err).Code; code != api.CodeDenied && code != api.CodeParams {
				t.Errorf("%q: %v", text, err)
			}
			checked, err := r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: text})
			if err == nil && answerOf[api.GrantCheckResult](t)(checked, nil).Allowed {
				t.Errorf("%s allows %q", row.grant, text)
			}
		}
		if after := len(r.grants()); after != before {
			t.Errorf("%s: %d grants, were %d", row.grant, after, before)
		}
	}
}

// An agent cannot make a grant last longer by the way in which it writes the time.
func TestEscalationByTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	ends := r.engine.Now().Add(time.Hour)
	_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:fetch", Expires: ends})
	must(t, err)
	from := r.grants()["tool:fetch"].ID
	east, west := time.FixedZone("", 14*3600), time.FixedZone("", -12*3600)
	for text, fits := range map[string]bool{
		ends.In(east).Format(time.RFC3339): true, ends.In(west).Format(time.RFC3339): true,
		ends.Add(time.Second).In(west).Format(time.RFC3339): false, ends.Add(time.Nanosecond).In(east).Format(time.RFC3339Nano): false,
		"9999-12-31T23:59:59Z": false, "0001-01-01T00:00:00.000000001Z": false, ends.Format("2006-01-02T15:04:05") + "-99:00": false, "": false, "never": false,
	} {
		_, err := r.asAgent(agents.GrantDerive.Name, fmt.Sprintf(`{"from":%q,"grant":"tool:fetch","expires":%q}`, from, text))
		if (err == nil) != fits {
			t.Errorf("%q: %v", text, err)
		}
	}
	r.turn(time.Hour)
	if answerOf[api.GrantCheckResult](t)(r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: "tool:fetch"})).Allowed {
		t.Error("it is allowed after its time")
	}
}

// Ids of other owners' and namespaces' runs are worth nothing to an agent that has guessed
// them, and it cannot even learn that they exist. The control is each id in the hands of its
// own run.
func TestGuessedIDs(t *testing.T) {
	t.Parallel()
	has := agent.Kernel{Grants: []string{"tool:fetch"}, Budgets: []string{"reviews=100"}, Namespace: "acme"}
	r := newRig(t, has)
	own := r.run
	for _, elsewhere := range []agent.Run{newRun(1001, has), newRun(0, has), newRun(1000, agent.Kernel{Grants: has.Grants, Budgets: has.Budgets, Namespace: "acme/research"})} {
		r.run = elsewhere
		r.attach(true)
		grantID, reservation := r.grants()["tool:fetch"].ID, r.reserve("reviews", 10)
		attempts := func(grantID, reservation string) map[string]any {
			return map[string]any{
				agents.GrantDerive.Name:   api.GrantDeriveParams{From: grantID, Grant: "tool:fetch"},
				agents.GrantRevoke.Name:   api.GrantRevokeParams{ID: grantID},
				agents.BudgetSettle.Name:  api.BudgetSettleParams{Reservation: reservation, Amounts: map[string]int64{"reviews": 0}},
				agents.BudgetRelease.Name: api.BudgetReleaseParams{Reservation: reservation},
			}
		}
		r.run = own
		unknown := attempts("0123456789abcdef", "0123456789abcdef")
		for method, params := range attempts(grantID, reservation) {
			_, err := r.asAgent(method, params)
			wantCode(t, err, api.CodeNotFound)
			_, nothing := r.asAgent(method, unknown[method])
			hide := strings.NewReplacer(grantID, "ID", reservation, "ID", "0123456789abcdef", "ID")
			if err != nil && nothing != nil && hide.Replace(err.Error()) != hide.Replace(nothing.Error()) {
				t.Errorf("%s: %q, of one that is not there %q", method, err, nothing)
			}
		}
		list := answerOf[api.GrantListResult](t)(r.asAgent(agents.GrantList.Name, api.GrantListParams{After: grantID}))
		if len(list.Grants) != 1 || list.Grants[0].Holder != own.Spec.ID {
			t.Errorf("%+v", list)
		}
		_, err := r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: list.Grants[0].ID, To: elsewhere.Spec.ID, Grant: "tool:fetch"})
		wantCode(t, err, api.CodeNotFound)
		r.run = elsewhere
		if l := r.line("reviews"); l.Reserved != 10 || l.Used != 0 || len(r.grants()) != 1 {
			t.Errorf("%+v, %+v", l, r.grants())
		}
		_, err = r.asAgent(agents.BudgetSettle.Name, attempts(grantID, reservation)[agents.BudgetSettle.Name])
		must(t, err)
		r.run = own
	}
}

// A user neither sees nor sets the accounts of another, however the account is written. The
// control is the account as its owner writes it.
func TestAccountsOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}, Namespace: "acme"})
	_, err := r.SetBudget(1000, api.BudgetSetParams{Account: "1000/ns:acme", Limits: []string{"reviews=10"}})
	must(t, err)
	for _, account := range []string{"1000", "1000/ns:acme", "1000/name:worker", "1000/run:" + string(r.run.Spec.ID), "01000", "+1000", "1000 ", " 1000", "1000/", "1000/ns:", "1000/ns:acme/", "4294968296", "1001/../1000", "1001/ns:../../1000",
		"1001/ns:acme/../../1000", "0x3e8", "1e3", "１０００", "1000\x00", "-1", "*", "1001/run:" + string(r.run.Spec.ID) + "/ns:acme"} {
		if _, err := r.SetBudget(1001, api.BudgetSetParams{Account: account, Limits: []string{"reviews=1000000"}}); err == nil {
			t.Errorf("user 1001 sets %q", account)
		}
		if list, err := r.ListBudgets(1001, api.BudgetListParams{Account: account}); err == nil && len(list.Budgets) > 0 {
			t.Errorf("user 1001 sees %q: %+v", account, list)
		}
	}
	list, err := r.ListBudgets(1001, api.BudgetListParams{After: "1000"})
	if err != nil || len(list.Budgets) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	list, err = r.ListBudgets(1000, api.BudgetListParams{})
	if err != nil || !slices.ContainsFunc(list.Budgets, func(b api.Budget) bool { return b.Account == "1000/ns:acme" && *b.Granted == 10 }) {
		t.Errorf("control: %+v, %v", list, err)
	}
}

// Many settle and release one reservation at once: it ends once, with what that one said.
func TestARaceForOneReservation(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	for round := range 20 {
		before := r.line("reviews").Used
		id := r.reserve("reviews", 3)
		var ends, used atomic.Int64
		var all sync.WaitGroup
		for caller := range 16 {
			all.Go(func() {
				method, params, amount := agents.BudgetRelease.Name, any(api.BudgetReleaseParams{Reservation: id}), int64(0)
				if caller%2 == 0 {
					amount = int64(caller % 3)
					method, params = agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: id, Amounts: map[string]int64{"reviews": amount}}
				}
				if _, err := r.asAgent(method, params); err == nil {
					ends.Add(1)
					used.Add(amount)
				} else {
					wantCode(t, err, api.CodeNotFound)
				}
			})
		}
		all.Wait()
		if l := r.line("reviews"); ends.Load() != 1 || l.Reserved != 0 || l.Used != before+used.Load() {
			t.Fatalf("round %d: it ended %d times, %d were used of it: %+v", round, ends.Load(), used.Load(), l)
		}
	}
}

// An agent cannot take a key before its owner does, nor get the owner's answer. The control is
// the owner, who repeats the call.
func TestKeysAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}, Grants: []string{"tool:fetch"}})
	id := r.grants()["tool:fetch"].ID
	_, err := r.asAgent(agents.BudgetCharge.Name, `{"amounts":{"reviews":1},"key":"revoke"}`)
	must(t, err)
	for range 2 {
		gone := answerOf[api.GrantRevokeResult](t)(r.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: id, Keyed: api.Keyed{Key: "revoke"}}))
		if len(gone.Revoked) != 1 {
			t.Errorf("%+v", gone)
		}
	}
	for _, key := range []string{"revoke", "uid:1000 revoke", audit.Digest([]byte("uid:1000 revoke"))} {
		_, err = r.asAgent(agents.GrantRevoke.Name, api.GrantRevokeParams{ID: id, Keyed: api.Keyed{Key: key}})
		if err == nil {
			t.Errorf("%q gets the owner's answer", key)
		}
	}
}

// Numbers at the edges of their range neither wrap around nor make a budget larger.
func TestEscalationByNumbers(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100", fmt.Sprintf("others=%d", budget.MaxAmount)}})
	for _, amount := range []string{"-1", "-0", "0.5", "1e400", "9223372036854775807", "9223372036854775808", "18446744073709551617", "-9223372036854775808", "1e-1", `"1"`, "null", "true", "[1]", "0x10", "01", fmt.Sprint(budget.MaxAmount + 1)} {
		for _, method := range []string{agents.BudgetCharge.Name, agents.BudgetReserve.Name} {
			_, err := r.asAgent(method, `{"amounts":{"reviews":`+amount+`}}`)
			if err == nil && amount != "-0" && amount != "null" { // these are zero
				t.Errorf("%s of %s is allowed", method, amount)
			}
		}
	}
	for range 3 { // together more than an int64 holds
		r.charge("others", budget.MaxAmount)
	}
	_, err := r.asAgent(agents.BudgetReserve.Name, `{"amounts":{"others":1}}`)
	wantCode(t, err, api.CodeBudget)
	if l := r.line("reviews"); l.Used != 0 || l.Reserved != 0 || *l.Granted != 100 {
		t.Errorf("%+v", l)
	}
}
