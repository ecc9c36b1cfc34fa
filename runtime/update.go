package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/undo"
	"clove.run/clove/store"
)

// Update changes limits and network rules: all that u names, or nothing. A
// limit that this host cannot hold, or that the agent exceeds already, is refused. The
// store has the new spec when it returns, so a restart begins with it.
// CLOVE_MEMORY_BYTES and its like in the agent's environment stay what they
// were at the start, and so do the sizes of its tmpfs.
func (l *Live) Update(u agent.Update) error {
	return l.do(func() error { return l.s.update(u) })
}

// update is one transaction: each step notes how to take it back.
func (s *supervisor) update(u agent.Update) (err error) {
	next, rules, err := s.planUpdate(u)
	if err != nil {
		return err
	}
	var steps undo.Stack
	defer func() { err = errors.Join(err, steps.Run()) }()
	// The store comes last of what can fail, because a restart begins with the stored spec.
	if err := s.limit(s.spec.Limits, next.spec.Limits, &steps); err != nil {
		return err
	}
	if u.WallClock != nil {
		if err := s.extend(*u.WallClock); err != nil {
			return err
		}
		steps.Add("wall clock", func() error { return s.extend(s.spec.Limits.WallClock) })
	}
	// gofail: var updateApplied string
	// if err := failpoint(updateApplied, ""); err != nil { return err }

	var run agent.Run
	err = s.paths.withStore(func(st *store.Store) (err error) {
		run, err = st.Amend(s.spec.ID, agent.RunUpdated, describeUpdate(u), func(run *agent.Run) {
			run.Spec.Limits, run.Spec.Egress = next.spec.Limits, next.spec.Egress
		})
		return err
	})
	if err != nil {
		return agent.Failed("update", err)
	}
	steps.Release()
	// Nothing fails from here on.
	*s.run, *s.spec, s.held.enforced = run, next.spec, next.enforced
	if rules != nil {
		s.gate.Replace(rules)
	}
	s.setDeadline()
	if _, asked := s.held.enforced[agent.ControlCPUTime]; asked {
		s.checkCPU() // more CPUs reach the limit sooner
	}
	return nil
}

// limit changes the limits of the agent's cgroup, and those of the tree above it. v1 takes none of
// a cgroup that is above its parent's: so the tree is never below the agent.
func (s *supervisor) limit(from, to agent.Limits, steps *undo.Stack) error {
	own := limiterOf(s, s.group, s.freezer.frozen())
	if s.sum == nil {
		return own.apply(from, to, steps)
	}
	all, between := limiterOf(s, s.sum, s.freezer.paused), wider(from, to)
	for _, step := range []struct {
		limiter
		from, to agent.Limits
	}{{all, from, between}, {own, from, to}, {all, between, to}} {
		if err := step.apply(step.from, step.to, steps); err != nil {
			return err
		}
	}
	return nil
}

func limiterOf(s *supervisor, group *cgroups.Group, frozen bool) limiter {
	return limiter{name: s.spec.Name, group: group, paths: group.Paths(), host: s.probes.cgroups, frozen: frozen,
		bound: func(limits agent.Limits) error { return limitSockets(group, limits, *s.held, s.probes) }}
}

// wider has the larger of each limit that a cgroup holds.
func wider(a, b agent.Limits) agent.Limits {
	w := b
	w.MemoryBytes, w.Pids = max(a.MemoryBytes, b.MemoryBytes), max(a.Pids, b.Pids)
	if w.MemorySwapBytes = max(a.MemorySwapBytes, b.MemorySwapBytes); a.MemorySwapBytes == -1 || b.MemorySwapBytes == -1 {
		w.MemorySwapBytes = -1
	}
	if w.CPUs = max(a.CPUs, b.CPUs); a.CPUs == 0 || b.CPUs == 0 {
		w.CPUs = 0
	}
	return w
}

// planned is an update that is checked, and not yet carried out.
type planned struct {
	spec     agent.Spec
	enforced map[string]string
	held     enforcement   // of the run as it is
	probes   *probes       // of this host
	passed   time.Duration // of the wall clock
	freezer  *freezer
}

// planUpdate checks everything that can be checked before anything changes.
func (s *supervisor) planUpdate(u agent.Update) (next planned, rules *egress.Rules, err error) {
	if s.seen.cause != causeNone {
		return next, nil, &agent.Error{Kind: agent.KindConflict, Step: "update", Message: s.spec.Name + " is being ended"}
	}
	next = planned{*s.spec, maps.Clone(s.held.enforced), *s.held, s.probes, time.Duration(boottime.NowNS() - s.began), &s.freezer}
	for _, check := range []func(agent.Update) error{next.memory, next.cpus, next.pids, next.clock} {
		if err := check(u); err != nil {
			return next, nil, err
		}
	}
	if u.Rules == nil {
		return next, nil, nil
	}
	switch {
	case s.gate == nil || s.spec.Network == agent.NetworkNone:
		return next, nil, &agent.Error{Kind: agent.KindConflict, Step: "network", Message: s.spec.Name + " has network mode " + s.spec.Network + ", where no rules hold",
			Hint: "rules can change where `clove run` began with --network allowlist or public"}
	case s.gate.lost != "":
		return next, nil, &agent.Error{Kind: agent.KindConflict, Step: "network", Message: s.spec.Name + " has lost its network: " + s.gate.lost,
			Hint: "start it again to have one"}
	}
	next.spec.Egress.Rules = *u.Rules
	rules, err = rulesOf(s.share.withGranted(next.spec), s.streams.Owner)
	return next, rules, err
}

// updatable refuses a control that the run was started without.
func (p *planned) updatable(control string) error {
	if !p.held.lacks(control) {
		return nil
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "update " + control,
		Message: p.spec.Name + " runs without it: nothing enforces " + control + " here", Hint: "`clove doctor` says why"}
}

func invalidUpdate(control, message, hint string) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "update " + control, Message: message, Hint: hint}
}

func (p *planned) memory(u agent.Update) error {
	if u.MemoryBytes == nil && u.MemorySwapBytes == nil {
		return nil
	}
	limits := &p.spec.Limits
	// A new memory limit alone keeps the amount of swap. -1, any amount, stays -1.
	swap := limits.MemorySwapBytes - limits.MemoryBytes
	if u.MemoryBytes != nil {
		limits.MemoryBytes = *u.MemoryBytes
		if limits.MemorySwapBytes >= 0 {
			limits.MemorySwapBytes = limits.MemoryBytes + swap
		}
	}
	if u.MemorySwapBytes != nil {
		limits.MemorySwapBytes = *u.MemorySwapBytes
	}
	if limits.MemoryBytes <= 0 {
		return invalidUpdate(agent.ControlMemory, "there is always a limit", "give a size such as 256M")
	}
	if total := limits.MemorySwapBytes; total != -1 && total < limits.MemoryBytes {
		return invalidUpdate(agent.ControlMemorySwap, "it counts memory and swap together and is less than the memory limit",
			fmt.Sprintf("give at least %d bytes, or -1 for any amount of swap", limits.MemoryBytes))
	}
	return cmp.Or(p.updatable(agent.ControlMemory), p.updatable(agent.ControlMemorySwap))
}

func (p *planned) cpus(u agent.Update) error {
	if u.CPUs == nil {
		return nil
	}
	// In this form NaN, which compares false with everything, is rejected too.
	if least := float64(cpuQuotaMin) / cpuPeriod; !(*u.CPUs >= least && *u.CPUs <= agent.CPUsCeiling) {
		return invalidUpdate(agent.ControlCPU, fmt.Sprintf("%v is no number of CPUs", *u.CPUs),
			fmt.Sprintf("give %v or more, for example 1.5", least))
	}
	p.spec.Limits.CPUs = *u.CPUs
	if err := p.updatable(agent.ControlCPU); err != nil {
		return err
	}
	return p.nowEnforced(agent.ControlCPU)
}

// nowEnforced adds a control that the run may have done without so far.
func (p *planned) nowEnforced(control string) error {
	how, why, remedy := p.probes.mechanism(control)
	if how == "" {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "update " + control,
			Message: "this host cannot enforce it: " + why, Hint: remedy}
	}
	p.enforced[control] = how
	return nil
}

// pids accepts a limit below the present number. The kernel accepts it too, and verify
// finds it.
func (p *planned) pids(u agent.Update) error {
	if u.Pids == nil {
		return nil
	}
	if *u.Pids <= 0 || *u.Pids > agent.PidsCeiling {
		return invalidUpdate(agent.ControlPids, fmt.Sprintf("%d is no limit", *u.Pids), "give a number such as 512")
	}
	p.spec.Limits.Pids = *u.Pids
	return p.updatable(agent.ControlPids)
}

// clock refuses a total that is over already: it would end the agent, which is `clove
// stop`'s task.
func (p *planned) clock(u agent.Update) error {
	if u.WallClock == nil {
		return nil
	}
	switch {
	case *u.WallClock < 0 || *u.WallClock > 0 && *u.WallClock <= p.passed:
		return invalidUpdate(agent.ControlWallClock, fmt.Sprintf("%s of it have passed already", p.passed.Round(time.Millisecond)),
			"it counts from the agent's start; `clove stop` ends it now")
	case len(p.freezer.holds) > 0:
		return &agent.Error{Kind: agent.KindBusy, Step: "update " + agent.ControlWallClock, Message: p.spec.Name + " is frozen while its changes are read",
			Hint: "try again in a moment"}
	case p.freezer.paused:
		// clove-init, which keeps the clock, is frozen with the rest.
		return &agent.Error{Kind: agent.KindConflict, Step: "update " + agent.ControlWallClock, Message: p.spec.Name + " is paused",
			Hint: "`clove resume` it first: its clock can be set only while it runs"}
	}
	p.spec.Limits.WallClock = *u.WallClock
	if *u.WallClock == 0 {
		delete(p.enforced, agent.ControlWallClock)
		return nil
	}
	return p.nowEnforced(agent.ControlWallClock)
}

// extendPatience bounds the wait for clove-init's answer; it does nothing else
// that takes long.
const extendPatience = 10 * time.Second

// extend gives clove-init another wall clock and waits until it has it. It runs in the
// loop, so no other event is handled meanwhile. Two are, because the answer may depend on
// them: other messages of clove-init, and the end of the grace.
func (s *supervisor) extend(wallClock time.Duration) error {
	silent := &agent.Error{Kind: agent.KindBusy, Step: "update " + agent.ControlWallClock,
		Message: fmt.Sprintf("clove-init did not answer within %s", extendPatience)}
	if err := s.send(initproto.Message{Extend: &initproto.Extend{WallClock: wallClock}}); errors.Is(err, os.ErrDeadlineExceeded) {
		return silent
	} else if err != nil {
		return errEnded()
	}
	patience := time.NewTimer(extendPatience)
	defer patience.Stop()
	for s.messages != nil {
		select {
		case m, open := <-s.messages:
			if open && m.Extended != nil && m.Extended.WallClock == wallClock {
				if !m.Extended.Accepted {
					return &agent.Error{Kind: agent.KindConflict, Step: "update " + agent.ControlWallClock,
						Message: s.spec.Name + " is being ended", Hint: "its time is over"}
				}
				return nil
			}
			s.onMessage(m, open)
		case <-s.over.C:
			s.killAgent() // one that does not answer does not hold its deadline either
		case <-patience.C:
			return silent
		}
	}
	return errEnded()
}

// describeUpdate is the text of the update's event.
func describeUpdate(u agent.Update) string {
	var parts []string
	add := func(is bool, text func() string) {
		if is {
			parts = append(parts, text())
		}
	}
	add(u.MemoryBytes != nil, func() string { return fmt.Sprintf("memory %d bytes", *u.MemoryBytes) })
	add(u.MemorySwapBytes != nil, func() string { return fmt.Sprintf("memory and swap %d bytes", *u.MemorySwapBytes) })
	add(u.CPUs != nil, func() string { return fmt.Sprintf("%v CPUs", *u.CPUs) })
	add(u.Pids != nil, func() string { return fmt.Sprintf("%d pids", *u.Pids) })
	add(u.WallClock != nil, func() string { return fmt.Sprintf("timeout %s", *u.WallClock) })
	add(u.Rules != nil, func() string { return fmt.Sprintf("%d network rules", len(*u.Rules)) })
	return strings.Join(parts, ", ")
}
