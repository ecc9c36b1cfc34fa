package seccomp

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Use is a system call that was made.
type Use struct {
	Call string
	Args [6]uint64
}

// NeededGroup is a group that minimal refuses, or allows in part, and that was used.
type NeededGroup struct {
	Name   string
	Used   []string // the calls that were made
	Calls  []string // all that the filter allows for them
	Reason string   // why minimal does without
}

// Needs are what uses need beyond minimal. Uses that minimal allows need nothing.
type Needs struct {
	Groups []NeededGroup
	// Filter is minimal with the calls of Groups, in docker's JSON format; nil: minimal is enough.
	Filter []byte
	// Within is the narrowest built-in profile that allows all uses.
	Within string
}

// Least answers which filter allows the uses, and as little else as its groups can. A call that
// was not used, but is in a group of which a call was used, is allowed as strict allows it;
// a used one as the narrowest profile does that lets it pass. w is what the agent's own filter does
// without; a use of that is allowed nevertheless.
func Least(uses []Use, w Without) (Needs, error) {
	l := &least{}
	for _, b := range builtins() {
		b = b.without(w)
		profile, err := b.build()
		if err != nil {
			return Needs{}, err
		}
		l.tables, l.profiles = append(l.tables, b), append(l.profiles, profile)
	}
	return l.needs(uses)
}

// least has the built-in profiles from the widest to the narrowest.
type least struct {
	tables   []builtin
	profiles []*specs.LinuxSeccomp
}

// narrowest is the index of the narrowest profile that allows a call; -1: none does.
func (l *least) narrowest(u Use) int {
	for i, profile := range slices.Backward(l.profiles) {
		if Decide(profile, u.Call, u.Args).Allowed() {
			return i
		}
	}
	return -1
}

func (l *least) needs(uses []Use) (Needs, error) {
	minimal := len(l.profiles) - 1
	from := map[string]int{} // of each used call: the profile whose rules it gets
	needs := Needs{Within: Minimal}
	within := minimal
	for _, u := range uses {
		i := l.narrowest(u)
		if i == minimal {
			continue
		}
		if have, known := from[u.Call]; !known || i < have {
			from[u.Call] = i
		}
		within = min(within, i)
	}
	if len(from) == 0 {
		return needs, nil
	}
	if needs.Within = Unconfined; within >= 0 {
		needs.Within = l.tables[within].name
	}
	needs.Groups = l.groups(from)
	var err error
	needs.Filter, err = l.filter(needs.Groups, from)
	return needs, err
}

// groups collects the used calls by their group in minimal, sorted by name.
func (l *least) groups(from map[string]int) (all []NeededGroup) {
	rows := map[string]*NeededGroup{}
	for call := range from {
		name, reason := l.rowOf(call)
		if rows[name] == nil {
			rows[name] = &NeededGroup{Name: name, Reason: reason, Calls: l.calls(name)}
		}
		g := rows[name]
		g.Used = append(g.Used, call)
		if !slices.Contains(g.Calls, call) {
			g.Calls = append(g.Calls, call)
		}
	}
	for _, g := range rows {
		slices.Sort(g.Used)
		slices.Sort(g.Calls)
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b NeededGroup) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	return all
}

// alone is the group of a call that no row of minimal names.
const alone = "other"

// rowOf is the group of a call, and why minimal refuses it.
func (l *least) rowOf(call string) (group, reason string) {
	minimal := l.tables[len(l.tables)-1]
	if r := minimal.refusalOf(call); r != nil {
		return r.group, r.reason
	}
	if c := minimal.conditionOf(call); c != nil {
		return c.group, c.reason
	}
	return alone, "no row of minimal has it"
}

// calls are those of a group that strict allows: what belongs together in a program, such as
// making a process and waiting for it. Calls that only standard allows are taken one by one.
func (l *least) calls(group string) (names []string) {
	minimal, strict := l.tables[len(l.tables)-1], l.profiles[len(l.profiles)-2]
	for _, r := range minimal.refusals {
		if r.group == group {
			names = append(names, r.names...)
		}
	}
	for _, c := range minimal.conditions {
		if c.group == group {
			names = append(names, c.name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(call string) bool {
		_, exists := numberOf(call)
		return !exists || verdictOf(strict, call) == Refused
	})
}

// filter is minimal, in which the calls of the groups have the rules of another profile.
func (l *least) filter(groups []NeededGroup, from map[string]int) ([]byte, error) {
	minimal, strict := l.profiles[len(l.profiles)-1], len(l.profiles)-2
	var wider []string
	for _, g := range groups {
		wider = append(wider, g.Calls...)
	}
	filter := *minimal
	filter.Syscalls = nil
	for _, rule := range minimal.Syscalls {
		rule.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(call string) bool { return slices.Contains(wider, call) })
		if len(rule.Names) > 0 {
			filter.Syscalls = append(filter.Syscalls, rule)
		}
	}
	for _, call := range wider {
		i, used := from[call]
		switch {
		case !used:
			filter.Syscalls = append(filter.Syscalls, rulesNamed(l.profiles[strict], call)...)
		case i < 0: // no profile allows it: the run had another filter, or none
			filter.Syscalls = append(filter.Syscalls, specs.LinuxSyscall{Names: []string{call}, Action: specs.ActAllow})
		default:
			filter.Syscalls = append(filter.Syscalls, rulesNamed(l.profiles[i], call)...)
		}
	}
	text, err := json.MarshalIndent(&filter, "", "  ")
	if err == nil {
		_, err = Parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write a filter for what was used: %w", err)
	}
	return append(text, '\n'), nil
}

// rulesNamed are a profile's rules for one call, which then stand for it alone.
func rulesNamed(profile *specs.LinuxSeccomp, call string) (rules []specs.LinuxSyscall) {
	for _, rule := range profile.Syscalls {
		if slices.Contains(rule.Names, call) {
			rule.Names = []string{call}
			rules = append(rules, rule)
		}
	}
	return rules
}
