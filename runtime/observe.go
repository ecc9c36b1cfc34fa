package runtime

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
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
	if spec.Files.Read != nil {
		lists = append(lists, observe.ReadCalls())
	}
	return observe.Together(append(lists, shadowCalls(spec))...)
}

// watchesFiles: a part of what the agent sees was made read-only for this run, or there is a list
// of programs, or of what may be read.
func watchesFiles(spec agent.Spec) bool {
	return spec.Files.ReadOnly || spec.Files.Execute != nil || spec.Files.Read != nil || slices.ContainsFunc(spec.Files.Binds, func(b agent.Bind) bool { return b.ReadOnly })
}

// denialRecorder enters in the denials what a run's calls were refused.
type denialRecorder struct {
	spec       agent.Spec
	hostID     uint32 // of id 0 inside
	denials    *denials
	shadow     *shadowRecorder // nil: the run has no shadow
	prediction func() (*Prediction, error)
	readable   []string // real paths; with a list of what may be read, only what is in them is
	lowestPort uint16   // that the agent may listen on
}

func newDenialRecorder(spec agent.Spec, hostID uint32, all *denials, shadow *shadowRecorder) *denialRecorder {
	return &denialRecorder{spec: spec, hostID: hostID, denials: all, shadow: shadow, prediction: sync.OnceValues(func() (*Prediction, error) { return Predict(spec) })}
}

// see looks at a call before it is answered.
func (w *denialRecorder) see(o observed) {
	if !o.Verdict.Allowed() {
		w.filtered(o)
		return
	}
	refused := false
	for kind, found := range w.findings(o) {
		for _, f := range found {
			refused = true
			w.found(o, kind, f)
		}
	}
	if !refused {
		w.shadow.saw(o)
	}
}

// findings are by kind of denial. Of two reasons against one call only the first counts, as to the
// kernel.
func (w *denialRecorder) findings(o observed) map[string][]observe.Finding {
	all := map[string][]observe.Finding{
		agent.DenialFile: observe.Files(o.From, o.Call, o.Name), agent.DenialExec: observe.Programs(o.From, o.Call, o.Name),
		agent.DenialCapability: observe.Capabilities(o.From, o.Call, o.Name, w.hostID, w.lowestPort),
	}
	if w.spec.Files.Read == nil || len(all[agent.DenialFile])+len(all[agent.DenialExec]) > 0 {
		return all
	}
	kind := agent.DenialFile
	if observe.Executes(o.Name) {
		kind = agent.DenialExec
	}
	all[kind] = observe.Reads(o.From, o.Call, o.Name, w.mayRead)
	return all
}

// mayRead compares real paths, as the rules were made of them.
func (w *denialRecorder) mayRead(at string) bool {
	return slices.ContainsFunc(w.readable, func(place string) bool { return at == place || strings.HasPrefix(at, place+"/") })
}

// whyHint is the last of each notice.
const whyHint = "`clove why` says what would let it pass"

// filtered enters a call that the filter refuses. Only the first of a name is looked at
// further.
func (w *denialRecorder) filtered(o observed) {
	if w.denials.count(agent.DenialCall, o.Name) {
		return
	}
	rule, explained := ruleOfCall(w.spec, o.Name)
	w.denials.add(w.denial(o, agent.DenialCall, o.Name, rule, o.Verdict.Errno), explained.Reason, whyHint)
}

// found enters what the rest of the sandbox refuses.
func (w *denialRecorder) found(o observed, kind string, f observe.Finding) {
	if w.denials.count(kind, f.Target) {
		return
	}
	rule, reason := w.ruleOf(kind, f), o.Name+" there is refused"
	switch {
	case f.Unlisted:
		reason = "it is not in the list of what may be read"
	case kind == agent.DenialCapability:
		reason = o.Name + " needs it"
	case kind == agent.DenialExec:
		if reason = "programs are not executed there"; rule == programsPlace {
			reason = "it is not in the list of programs"
		}
	}
	w.denials.add(w.denial(o, kind, f.Target, rule, f.Errno), reason, whyHint)
}

// ruleOf names what of the run's request refuses a target.
func (w *denialRecorder) ruleOf(kind string, found observe.Finding) string {
	if found.Unlisted {
		return agent.RuleRead
	}
	if kind == agent.DenialCapability {
		if w.spec.User.UID != 0 {
			return "user " + w.spec.User.Name
		}
		return "the capabilities of root inside"
	}
	if _, kernels := kernelMount(w.spec, found.Target); kind == agent.DenialExec && w.spec.Files.Execute != nil && !kernels {
		return programsPlace
	}
	f, err := w.prediction()
	if err != nil {
		return ""
	}
	access, err := f.File(found.Target)
	if err != nil {
		return ""
	}
	return access.By
}

func (w *denialRecorder) denial(o observed, kind, target, rule string, errno unix.Errno) agent.Denial {
	return agent.Denial{Kind: kind, Target: target, Rule: rule, Program: o.From.Program(o.Call), Errno: unix.ErrnoName(errno), Call: callOf(o)}
}

// filtersOf makes the programs of the profile that the spec names. PID 1 is under strict, which
// suffices for its work. Under unconfined nothing is reported: what is refused there is no denial
// of a policy's.
func filtersOf(spec agent.Spec) (f filters, err error) {
	own, err := profile(spec)
	if err != nil {
		return f, err
	}
	var watched []seccomp.Watch
	if spec.Seccomp.Profile != seccomp.Unconfined || spec.Seccomp.Document != nil {
		f.profile, watched = own, watchedCalls(spec)
		if spec.Learn {
			if f.beyond, err = seccomp.Beyond(own); err != nil {
				return f, err
			}
			watched = observe.Together(watched, f.beyond, mappingCalls())
		}
	}
	if f.agent, err = seccomp.Compile(own, initproto.GateOption, watched...); err != nil {
		return f, err
	}
	strict, err := seccomp.Profile(seccomp.Strict)
	if err != nil {
		return f, err
	}
	below, err := seccomp.Compile(strict, initproto.GateOption)
	if err != nil {
		return f, err
	}
	f.init = below.Plain
	return f, nil
}
