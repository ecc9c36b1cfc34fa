package runtime

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/egress"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/policies/shadow"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
	"clove.run/clove/seccomp/observe"
)

// shadowRecorder collects what a run's shadow policy would have refused. It sees what was allowed, once
// that is decided, and answers no call. nil: the run has no shadow.
type shadowRecorder struct {
	spec   agent.Spec // the run's own, as it began
	owner  agent.Owner
	grants shadow.Grants

	filter     *seccomp.Filter // nil: the shadow is unconfined
	prediction *Prediction     // of the shadow's files
	programs   *rootfs.Plan    // has the shadow's list of programs; nil: that refuses none that the run's own lets pass

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

// newShadowRecorder fails for a shadow that could not be a run's policy.
func newShadowRecorder(spec agent.Spec, owner agent.Owner) (*shadowRecorder, error) {
	if spec.Shadow == nil {
		return nil, nil
	}
	w := &shadowRecorder{spec: spec, owner: owner, known: map[shadowKey]int{}}
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
	if w.prediction, err = Predict(spec.Shadowed()); err != nil {
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
func (w *shadowRecorder) rules(granted []agent.EgressRule) (*egress.Rules, error) {
	if w == nil {
		return nil, nil
	}
	return rulesOf(w.grants.Rules(w.spec, granted), w.owner)
}

// add counts one thing that would have been refused.
func (w *shadowRecorder) add(d agent.Denial) {
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
func (w *shadowRecorder) addGrant(kind, text string, count int64) {
	if what, rule, refused := w.grants.Refuses(text); refused && count > 0 {
		w.add(agent.Denial{Time: time.Now().UTC(), Kind: kind, Target: strings.TrimPrefix(what, string(grant.Model)+":"), Rule: rule, Count: count})
	}
}

// called looks at what a call of the agent's names that a grant has allowed, as the engine did. A
// call that only asks names it, too.
func (w *shadowRecorder) called(method string, params, result json.RawMessage) {
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
func (w *shadowRecorder) enter(record *agent.Record, now agent.Spec, network []agent.Denial, charged map[string]int64, looked bool) {
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

// CheckRules rejects network rules that a run of the owner's would not start with.
func CheckRules(spec agent.Spec, owner agent.Owner) error {
	if _, err := rulesOf(spec, owner); err != nil {
		return err
	}
	_, err := newShadowRecorder(spec, owner)
	return err
}

// shadowFilter is the filter of a spec's shadow; nil: it is unconfined.
func shadowFilter(spec agent.Spec) (*seccomp.Filter, error) {
	under, err := profile(spec.Shadowed())
	if err != nil || under == nil {
		return nil, err
	}
	return seccomp.Compile(under, initproto.GateOption)
}

// shadowCalls are the calls that the run's filter allows, and of which its shadow refuses some or
// all; with them the calls that change files, where the shadow keeps more of them.
func shadowCalls(spec agent.Spec) (all []seccomp.Watch) {
	if spec.Shadow == nil {
		return nil
	}
	own, err := profile(spec)
	under, uerr := profile(spec.Shadowed())
	if err != nil || uerr != nil || own == nil {
		return nil // the start reports it; without a filter nothing is handed over
	}
	compared := seccomp.Compare(under, own)
	for _, d := range slices.Concat(compared.OnlyB, compared.Other) {
		// A call that the Linux kernel seems to lack is no refusal: programs try it on purpose.
		if d.A == seccomp.Allowed || d.A == seccomp.Refused && seccomp.Decide(under, d.Call, [6]uint64{}).Errno == unix.ENOSYS {
			continue
		}
		all = append(all, seccomp.Watch{Call: d.Call})
	}
	if shadows(spec, "files.root", "files.writable") {
		all = append(all, observe.FileCalls()...)
	}
	if shadows(spec, programsPlace) {
		all = append(all, observe.ProgramCalls()...)
	}
	return all
}

// programsPlace is where a policy has its list of programs.
const programsPlace = "files.execute"

// shadows reports whether the shadow of a spec allows less in one of these places.
func shadows(spec agent.Spec, places ...string) bool {
	return slices.ContainsFunc(shadow.Unseen(spec, false), func(place string) bool { return slices.Contains(places, place) })
}

// planPrograms plans the root that the run would have under its shadow, for the list of programs
// alone. A list that no run could have is refused as the run's own would be.
func (w *shadowRecorder) planPrograms(paths Paths, own rootfs.Config) error {
	if w == nil || !shadows(w.spec, programsPlace) {
		return nil
	}
	root := rootConfig(paths, w.spec.Shadowed(), agent.FirstHostID)
	root.User, root.ResolvConf, root.Hosts = own.User, own.ResolvConf, own.Hosts
	plan, err := rootfs.NewPlan(root)
	if err != nil {
		return ofShadow(w.spec, planFailed(err))
	}
	w.programs = &plan
	return nil
}

// saw looks at a call that the sandbox does not refuse, before it is carried out.
func (w *shadowRecorder) saw(o observed) {
	if w == nil {
		return
	}
	if w.filter != nil {
		if v := w.filter.Answer(o.Number, o.Arch, o.Args); !v.Allowed() && v.Errno != unix.ENOSYS {
			w.addCall(o, agent.DenialCall, o.Name, v.Errno, func() string { rule, _ := ruleOfCall(w.spec.Shadowed(), o.Name); return rule })
			return
		}
	}
	for _, f := range observe.Changes(o.From, o.Call, o.Name) {
		if access, err := w.prediction.File(f.Target); err == nil && !access.Write {
			w.addCall(o, agent.DenialFile, f.Target, f.Errno, func() string { return access.By })
		}
	}
	if w.programs == nil {
		return
	}
	for _, f := range observe.Executed(o.From, o.Call, o.Name) {
		if !w.programs.Executable(f.Target) {
			w.addCall(o, agent.DenialExec, f.Target, f.Errno, func() string { return programsPlace })
		}
	}
}

// addCall counts a call; the program is looked up for the first of a target only.
func (w *shadowRecorder) addCall(o observed, kind, target string, errno unix.Errno, rule func() string) {
	d := agent.Denial{Time: time.Now().UTC(), Kind: kind, Target: bounded(target), Count: 1}
	w.mu.Lock()
	_, known := w.known[keyOf(d)]
	w.mu.Unlock()
	if !known {
		d.Rule, d.Program, d.Errno, d.Call = rule(), bounded(o.From.Program(o.Call)), unix.ErrnoName(errno), callOf(o)
	}
	w.add(d)
}

// CheckRule rejects one network rule that a run of the owner's would not start with.
func CheckRule(rule agent.EgressRule, owner agent.Owner) error {
	return CheckRules(agent.Spec{Network: agent.NetworkAllowlist, Egress: agent.Egress{Rules: []agent.EgressRule{rule}}}, owner)
}
