package runtime

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/policies/shadow"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
	"clove.run/clove/seccomp/observe"
)

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
func (w *watcher) planPrograms(paths Paths, own rootfs.Config) error {
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
func (w *watcher) saw(o observed) {
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
		if access, err := w.foresight.File(f.Target); err == nil && !access.Write {
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
func (w *watcher) addCall(o observed, kind, target string, errno unix.Errno, rule func() string) {
	d := agent.Denial{Time: time.Now().UTC(), Kind: kind, Target: bounded(target), Count: 1}
	w.mu.Lock()
	_, known := w.known[keyOf(d)]
	w.mu.Unlock()
	if !known {
		d.Rule, d.Program, d.Errno, d.Call = rule(), bounded(o.From.Program(o.Call)), unix.ErrnoName(errno), callOf(o)
	}
	w.add(d)
}
