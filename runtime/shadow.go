package runtime

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/egress"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/policies/shadow"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

// watcher collects what a run's shadow policy would have refused. It sees what was allowed, once
// that is decided, and answers nobody. nil: the run has no shadow.
type watcher struct {
	spec   agent.Spec // the run's own, as it began
	owner  agent.Owner
	grants shadow.Grants

	filter    *seccomp.Filter // nil: the shadow is unconfined
	foresight *Foresight      // of the shadow's files
	programs  *rootfs.Plan    // has the shadow's list of programs; nil: that refuses none that the run's own lets pass

	mu      sync.Mutex // guards the fields below
	denials []agent.Denial
	known   map[shadowKey]int // an index of denials
	refused int64
	others  int64
}

type shadowKey struct{ kind, target, rule string }

// keyOf leaves the rule out where a target has one only, so that it need not be looked for again.
func keyOf(d agent.Denial) shadowKey {
	switch d.Kind {
	case agent.DenialCall, agent.DenialFile, agent.DenialExec:
		d.Rule = ""
	}
	return shadowKey{d.Kind, d.Target, d.Rule}
}

// newWatcher fails for a shadow that could not be a run's policy.
func newWatcher(spec agent.Spec, owner agent.Owner) (*watcher, error) {
	if spec.Shadow == nil {
		return nil, nil
	}
	w := &watcher{spec: spec, owner: owner, known: map[shadowKey]int{}}
	var err error
	if w.grants, err = shadow.NewGrants(spec); err != nil {
		return nil, ofShadow(spec, err)
	}
	if _, err := w.rules(nil); err != nil {
		return nil, ofShadow(spec, err)
	}
	if w.filter, err = shadowFilter(spec); err != nil {
		return nil, ofShadow(spec, err)
	}
	if w.foresight, err = Foresee(spec.Shadowed()); err != nil {
		return nil, ofShadow(spec, err)
	}
	return w, nil
}

// ofShadow says of a mistake that it is the shadow's.
func ofShadow(spec agent.Spec, err error) error {
	f := agent.FailureOf(err)
	return &agent.Error{Kind: agent.KindOf(err), Step: "--policy-shadow", Message: "the policy " + spec.Shadow.Policy.String() + " cannot be decided: " + f.Message, Hint: f.Hint}
}

// rules are the shadow's network rules, with those of net grants that are in force; nil: there
// is no shadow.
func (w *watcher) rules(granted []agent.EgressRule) (*egress.Rules, error) {
	if w == nil {
		return nil, nil
	}
	return rulesOf(w.grants.Rules(w.spec, granted), w.owner)
}

// add counts one thing that would have been refused.
func (w *watcher) add(d agent.Denial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused += d.Count
	key := keyOf(d)
	at, known := w.known[key]
	switch {
	case known:
		w.denials[at].Count += d.Count
	case len(w.denials) < agent.ShadowDenialsMost:
		w.known[key] = len(w.denials)
		w.denials = append(w.denials, d)
	default:
		w.others += d.Count
	}
}

// addGrant counts what no grant of the shadow covers.
func (w *watcher) addGrant(kind, text string, count int64) {
	if what, rule, refused := w.grants.Refuses(text); refused && count > 0 {
		w.add(agent.Denial{Time: time.Now().UTC(), Kind: kind, Target: strings.TrimPrefix(what, string(grant.Model)+":"), Rule: rule, Count: count})
	}
}

// called looks at what a call of the agent's names that a grant has allowed, as the engine did. A
// call that only asks names it, too.
func (w *watcher) called(method string, params, result json.RawMessage) {
	if w == nil {
		return
	}
	row, found := agents.Find(method)
	if !found {
		return
	}
	value, err := row.Decode(params)
	named, names := value.(interface{ Names() []string })
	got := api.GrantCheckResult{Allowed: true} // of other methods: they were done
	_ = json.Unmarshal(result, &got)           // clove's own answer, in which only grant.check says that
	if !names || err != nil || !got.Allowed {
		return
	}
	for _, what := range named.Names() {
		w.addGrant("grant", what, 1)
	}
}

// enter adds to a record that is complete otherwise what the shadow would have done. network is
// what the broker counted for it; looked says that system calls were reported.
func (w *watcher) enter(record *agent.Record, now agent.Spec, network []agent.Denial, charged map[string]int64, looked bool) {
	if w == nil {
		return
	}
	for _, d := range network {
		w.add(d)
	}
	for _, model := range record.Usage.Models {
		w.addGrant("model", string(grant.Model)+":"+model.Model, model.Calls)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	denials := slices.Clone(w.denials)
	slices.SortStableFunc(denials, func(a, b agent.Denial) int { return a.Time.Compare(b.Time) })
	record.Shadow = &agent.ShadowUse{Policy: now.Shadow.Policy, Refused: w.refused, Denials: append([]agent.Denial{}, denials...), Others: w.others}
	limits, unknown := shadow.Limits(now, *record, charged)
	record.Shadow.Limits, record.Shadow.Wider, record.Shadow.Unseen = limits, shadow.Wider(now), append(shadow.Unseen(now, looked), unknown...)
}

// chargedPatience bounds the wait for the answer about budgets at the end of a run.
const chargedPatience = 2 * time.Second

// charged is what the run's own budgets have counted, for a shadow that has some. What cannot
// be read is nobody's knowledge, and the record says so.
func (l *launch) charged() map[string]int64 {
	if l.watcher == nil || l.share == nil || len(l.spec.Shadow.Kernel.Budgets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(l.share.ctx, chargedPatience)
	defer cancel()
	text, err := l.share.kernel.Call(ctx, l.spec.ID, agents.BudgetGet.Name, nil)
	var got api.BudgetResult
	if err != nil || json.Unmarshal(text, &got) != nil {
		return nil
	}
	own, all := string(budget.RunKey(l.run.Owner.UID, l.spec.ID)), map[string]int64{}
	for _, b := range got.Budgets {
		if b.Account == own {
			all[b.Dimension] = b.Used
		}
	}
	return all
}
