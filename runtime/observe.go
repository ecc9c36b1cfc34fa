package runtime

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/seccomp"
	"clove.run/clove/seccomp/observe"
)

// watchedCalls are those that the filter of a run hands over although it allows them. Where
// nothing could be refused, nothing is watched.
func watchedCalls(spec agent.Spec) []seccomp.Watch {
	lists := [][]seccomp.Watch{observe.CapabilityCalls(capabilitiesOf(spec))}
	if watchesFiles(spec) {
		lists = append(lists, observe.FileCalls(), observe.ProgramCalls())
	}
	return observe.Together(append(lists, shadowCalls(spec))...)
}

// watchesFiles: a part of what the agent sees was made read-only for this run, or there is a list
// of programs.
func watchesFiles(spec agent.Spec) bool {
	return spec.Files.ReadOnly || spec.Files.Execute != nil || slices.ContainsFunc(spec.Files.Binds, func(b agent.Bind) bool { return b.ReadOnly })
}

// witness enters in the denials what a run's calls were refused.
type witness struct {
	spec      agent.Spec
	hostID    uint32 // of id 0 inside
	denials   *denials
	shadow    *watcher // nil: the run has no shadow
	foresight func() (*Foresight, error)
}

func newWitness(spec agent.Spec, hostID uint32, all *denials, shadow *watcher) *witness {
	return &witness{spec, hostID, all, shadow, sync.OnceValues(func() (*Foresight, error) { return Foresee(spec) })}
}

// see looks at a call before it is answered.
func (w *witness) see(o observed) {
	if !o.Verdict.Allowed() {
		w.filtered(o)
		return
	}
	refused := false
	for kind, found := range map[string][]observe.Finding{
		agent.DenialFile: observe.Files(o.From, o.Call, o.Name), agent.DenialExec: observe.Programs(o.From, o.Call, o.Name),
		agent.DenialCapability: observe.Capabilities(o.From, o.Call, o.Name, w.hostID),
	} {
		for _, f := range found {
			refused = true
			w.found(o, kind, f)
		}
	}
	if !refused {
		w.shadow.saw(o)
	}
}

// hint is the last of each notice.
const hint = "`clove why` says what would let it pass"

// filtered enters a call that the filter refuses. Only the first of a name is looked at
// further.
func (w *witness) filtered(o observed) {
	if w.denials.count(agent.DenialCall, o.Name) {
		return
	}
	rule, explained := ruleOfCall(w.spec, o.Name)
	w.denials.add(w.denial(o, agent.DenialCall, o.Name, rule, o.Verdict.Errno), explained.Reason, hint)
}

// found enters what the rest of the sandbox refuses.
func (w *witness) found(o observed, kind string, f observe.Finding) {
	if w.denials.count(kind, f.Target) {
		return
	}
	rule, reason := w.ruleOf(kind, f.Target), o.Name+" there is refused"
	switch kind {
	case agent.DenialCapability:
		reason = o.Name + " needs it"
	case agent.DenialExec:
		if reason = "programs are not executed there"; rule == programsPlace {
			reason = "it is not in the list of programs"
		}
	}
	w.denials.add(w.denial(o, kind, f.Target, rule, f.Errno), reason, hint)
}

// ruleOf names what of the run's request refuses a target.
func (w *witness) ruleOf(kind, target string) string {
	if kind == agent.DenialCapability {
		if w.spec.User.UID != 0 {
			return "user " + w.spec.User.Name
		}
		return "the capabilities of root inside"
	}
	if _, kernels := kernelMount(w.spec, target); kind == agent.DenialExec && w.spec.Files.Execute != nil && !kernels {
		return programsPlace
	}
	f, err := w.foresight()
	if err != nil {
		return ""
	}
	access, err := f.File(target)
	if err != nil {
		return ""
	}
	return access.By
}

func (w *witness) denial(o observed, kind, target, rule string, errno unix.Errno) agent.Denial {
	return agent.Denial{Kind: kind, Target: target, Rule: rule, Program: o.From.Program(o.Call), Errno: unix.ErrnoName(errno), Call: callOf(o)}
}

// callOf is a call as a record has it.
func callOf(o observed) *agent.DeniedCall {
	call := &agent.DeniedCall{Name: o.Name, Number: int(o.Number)}
	for _, arg := range o.Args {
		call.Args = append(call.Args, fmt.Sprintf("%#x", arg))
	}
	return call
}

// ruleOfCall is the rule of a denial, and the reason behind it.
func ruleOfCall(spec agent.Spec, call string) (rule string, explained seccomp.Explanation) {
	rule = "seccomp " + spec.Seccomp.Profile
	explained, err := explainCall(spec, call)
	if err == nil && explained.Group != "" {
		rule += ": " + explained.Group
	}
	return rule, explained
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
