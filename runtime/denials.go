package runtime

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/seccomp"
)

// denials are what the sandbox refused the agent, besides the network, whose gate keeps its
// own. Targets are told of once, and counted. Whoever adds one never waits.
type denials struct {
	first   func(d agent.Denial, reason, hint string) // nil: nobody is told
	notices *outbox

	lock   sync.Mutex
	byKey  map[denialKey]*agent.Denial
	others *agent.Denial // of targets beyond maxDenials
}

type denialKey struct{ kind, target string }

// maxDenials bounds the targets that are counted separately, so that no agent fills the
// supervisor's memory or the record. otherTargets are the rest.
const (
	maxDenials   = 256
	otherTargets = "(other targets)"
	maxTarget    = 1024 // bytes of a target or a program
)

func newDenials(first func(d agent.Denial, reason, hint string)) *denials {
	return &denials{first: first, notices: newOutbox(maxDenials + 2), byKey: map[denialKey]*agent.Denial{}}
}

// count adds one more to a target that is known.
func (all *denials) count(kind, target string) (known bool) {
	all.lock.Lock()
	defer all.lock.Unlock()
	d := all.byKey[denialKey{kind, bounded(target)}]
	if d == nil && len(all.byKey) >= maxDenials {
		d = all.others
	}
	if d != nil {
		d.Count++
	}
	return d != nil
}

// add counts a denial whose target is not known yet, and tells of it.
func (all *denials) add(d agent.Denial, reason, hint string) {
	all.lock.Lock()
	d.Time, d.Count, d.Target, d.Program = time.Now().UTC(), 1, bounded(d.Target), bounded(d.Program)
	if len(all.byKey) < maxDenials {
		kept := d
		all.byKey[denialKey{d.Kind, d.Target}] = &kept
	} else {
		d = agent.Denial{Time: d.Time, Kind: d.Kind, Target: otherTargets, Count: 1}
		reason, hint = "there is no room to tell them apart", ""
		kept := d
		all.others = &kept
	}
	all.lock.Unlock()
	if all.first != nil {
		all.notices.put(func() { all.first(d, reason, hint) })
	}
}

// list has them in the order of their first time.
func (all *denials) list() []agent.Denial {
	if all == nil {
		return nil
	}
	all.lock.Lock()
	defer all.lock.Unlock()
	var list []agent.Denial
	for _, d := range all.byKey {
		list = append(list, *d)
	}
	if all.others != nil {
		list = append(list, *all.others)
	}
	slices.SortFunc(list, func(a, b agent.Denial) int { return a.Time.Compare(b.Time) })
	return list
}

// close tells what is still to be told.
func (all *denials) close() {
	if all != nil {
		_ = all.notices.until(func() error { return nil })
	}
}

func bounded(text string) string { return text[:min(len(text), maxTarget)] }

// refusedCall enters a call that the filter refuses. Only the first of a name is looked at
// further.
func (all *denials) refusedCall(spec agent.Spec, o observed) {
	if o.Verdict.Allowed() || all.count(agent.DenialCall, o.Name) {
		return
	}
	d := agent.Denial{Kind: agent.DenialCall, Target: o.Name, Program: o.From.Program(o.Call),
		Errno: unix.ErrnoName(o.Verdict.Errno), Call: deniedCall(o)}
	explained, err := explainCall(spec, o.Name)
	d.Rule = "seccomp " + spec.Seccomp.Profile
	if err == nil && explained.Group != "" {
		d.Rule += ": " + explained.Group
	}
	all.add(d, explained.Reason, "`clove why` says what would let it pass")
}

func deniedCall(o observed) *agent.DeniedCall {
	call := &agent.DeniedCall{Name: o.Name, Number: int(o.Number)}
	for _, arg := range o.Args {
		call.Args = append(call.Args, fmt.Sprintf("%#x", arg))
	}
	return call
}

// explainCall says why the run's filter refuses a call.
func explainCall(spec agent.Spec, call string) (seccomp.Explanation, error) {
	if spec.Seccomp.Document == nil {
		return seccomp.ExplainWithout(spec.Seccomp.Profile, call, narrower(spec))
	}
	own, err := profile(spec)
	if err != nil {
		return seccomp.Explanation{}, err
	}
	return seccomp.ExplainProfile(own, call)
}
