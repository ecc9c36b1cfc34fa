package learn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies/settings"
	"clove.run/clove/seccomp"
)

// Finding is something that a policy allows and a run never used.
type Finding struct {
	Place   string `json:"place" col:"PLACE"` // key of a policy document
	Allowed string `json:"allowed" col:"ALLOWED"`
	Used    string `json:"used" col:"USED"`
}

// Figures is an observation of a run that was not observed: what its record has.
func Figures(record agent.Record) agent.Observed {
	seen := agent.Observed{Incomplete: []string{"only the figures of the record are known"}}
	known := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	u := record.Usage
	seen.Peaks = agent.ObservedPeaks{MemoryBytes: known(u.MemoryPeakBytes), Pids: known(u.PidsPeak), CPUMS: known(u.CPUMS), WallMS: record.WallMS,
		OutputBytes: known(u.OutputBytes), DiskBytes: known(u.DiskBytes)}
	return seen
}

// observed reports whether more than figures is known: an agent executes something.
func (o Observation) observed() bool { return len(o.Executed) > 0 }

// farAbove is how many times what would be learned a limit is that is worth a finding.
const farAbove = 2

// Unused lists what the runs were allowed and did not use, in the order of a document's keys.
func Unused(o Observation) ([]Finding, error) {
	var all []Finding
	add := func(place, allowed, used string) { all = append(all, Finding{place, allowed, used}) }
	for _, l := range o.limits() {
		learned, _ := l.value()
		switch {
		case l.peak < 0:
		case l.given == 0:
			add(l.key, "no limit", l.Unit.Say(l.peak))
		case l.given > farAbove*learned:
			add(l.key, l.Unit.Say(l.given), l.Unit.Say(l.peak))
		}
	}
	if !o.observed() {
		return all, nil
	}
	o.unusedFiles(add)
	o.unusedPrograms(add)
	if err := o.unusedCalls(add); err != nil {
		return nil, err
	}
	return all, o.unusedTargets(add)
}

func (o Observation) unusedFiles(add func(place, allowed, used string)) {
	given := filesOf(o.Given)
	if !given.ReadOnly && len(o.base()) == 0 {
		add("files.root", "writable", "nothing of the base system was written")
	}
	for _, place := range agent.WritablePlaces {
		if given.StaysWritable(place) && !o.wrote(place) {
			add("files.writable", place, "nothing was written there")
		}
	}
	if opened := len(o.Read) + len(o.Executed) + len(o.Folders); !o.Given.Has(settings.Read) && opened > 0 {
		add("files.read", "every file", fmt.Sprintf("%d files and folders were opened", opened))
	}
	for _, v := range o.Given.Values[settings.Volume] {
		target := targetOf(v)
		switch {
		case len(within(slices.Concat(o.Read, o.Executed, o.Written), target)) == 0:
			add("files.volumes", v, "no file in it was opened")
		case !strings.HasSuffix(v, ":ro") && !o.wrote(target):
			add("files.volumes", v, "no file in it was written")
		}
	}
}

// unusedCalls lists the groups that minimal refuses, the runs' filter allows, and no run used.
func (o Observation) unusedCalls(add func(place, allowed, used string)) error {
	if !o.CallsKnown || !slices.Contains(seccomp.Names(), o.Given.Text(settings.Seccomp)) {
		return nil
	}
	groups, err := seccomp.Groups(seccomp.Minimal)
	if err != nil {
		return agent.Failed("seccomp", err)
	}
	profile, err := seccomp.Profile(o.Given.Text(settings.Seccomp))
	if err != nil {
		return agent.Failed("seccomp", err)
	}
	for _, g := range groups {
		allowed := slices.DeleteFunc(slices.Clone(g.Calls), func(call string) bool {
			return g.Verdict != seccomp.Refused || !seccomp.Decide(profile, call, [6]uint64{}).Allowed()
		})
		used := slices.ContainsFunc(o.Calls, func(c agent.ObservedCall) bool { return slices.Contains(g.Calls, c.Name) })
		if len(allowed) > 0 && !used {
			add("seccomp", fmt.Sprintf("%s: %s", g.Name, firstOf(allowed)), "none of them was called")
		}
	}
	return nil
}

// firstOf names a few calls of a group; clove seccomp show has all.
func firstOf(calls []string) string {
	const few = 3
	if more := len(calls) - few; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(calls[:few], " "), more)
	}
	return strings.Join(calls, " ")
}

func (o Observation) unusedTargets(add func(place, allowed, used string)) error {
	reached := slices.DeleteFunc(slices.Clone(o.Targets), func(t agent.ObservedTarget) bool { return !t.Allowed })
	if o.Given.Text(settings.NetworkMode) == agent.NetworkPublic {
		add("network.mode", "public", fmt.Sprintf("%d targets", len(reached)))
	}
	for _, rule := range o.Given.Values[settings.Allow] {
		rules, err := egress.New(egress.Config{Mode: agent.NetworkAllowlist, Rules: []agent.EgressRule{{Target: rule}}, IsHost: func(netip.Addr) bool { return false }})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(reached, func(t agent.ObservedTarget) bool { return covers(rules, t) }) {
			add("network.allow", rule, "never reached")
		}
	}
	for _, port := range o.Given.Values[settings.HostPort] {
		if !slices.ContainsFunc(reached, func(t agent.ObservedTarget) bool { return t.Kind == kindHostPort && fmt.Sprint(t.Port) == port }) {
			add("network.host_ports", port, "never reached")
		}
	}
	return nil
}

// covers reports whether rules allow a target that was reached.
func covers(rules *egress.Rules, t agent.ObservedTarget) bool {
	name, err := egress.ParseName(t.Name)
	if t.Port == 0 {
		return err == nil && rules.Resolve(name).Allowed
	}
	c := egress.Connection{Proto: egress.TCP}
	if t.Kind == kindUDP {
		c.Proto = egress.UDP
	}
	addr, aerr := netip.ParseAddr(t.Address)
	if aerr != nil {
		addr = anyAddress
	}
	c.Target = netip.AddrPortFrom(addr, t.Port)
	if err == nil {
		c.Pinned, c.Shown, c.Looked = []egress.Name{name}, name, true
	}
	return rules.Connect(c).Allowed
}

// anyAddress stands for the address of a name: a public one.
var anyAddress = netip.AddrFrom4([4]byte{93, 184, 216, 34})
