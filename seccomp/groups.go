package seccomp

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Group is one row of a profile's tables, for people.
type Group struct {
	Name    string   `json:"group"`
	Verdict Verdict  `json:"verdict"`
	Allowed string   `json:"allowed_for,omitempty"` // with conditions: what passes
	Reason  string   `json:"reason"`
	Calls   []string `json:"calls"`
}

// Groups are the rows of a built-in profile: what it allows, what it allows with conditions,
// and what it refuses. Calls that this machine does not have are left out. The other calls that
// standard and strict allow are one group.
func Groups(name string) ([]Group, error) {
	if name == Unconfined {
		profile, err := unconfined()
		if err != nil {
			return nil, err
		}
		return GroupsOf(profile), nil
	}
	b, err := find(name)
	if err != nil {
		return nil, err
	}
	profile, err := b.build()
	if err != nil {
		return nil, err
	}
	groups := b.allowedGroups(profile)
	for _, c := range b.conditions {
		groups = append(groups, Group{c.group, Conditional, c.allowed, c.reason, []string{c.name}})
	}
	for _, r := range b.refusals {
		groups = append(groups, Group{r.group, Refused, "", r.reason, r.names})
	}
	return here(groups), nil
}

// allowedGroups are the allowances, without the calls that have conditions.
func (b builtin) allowedGroups(profile *specs.LinuxSeccomp) []Group {
	if b.allowances == nil {
		return []Group{{Name: ordinary, Verdict: Allowed, Reason: ordinaryReason,
			Calls: allowedBy(profile, calls())}}
	}
	var groups []Group
	for _, a := range b.allowances {
		groups = append(groups, Group{a.group, Allowed, "", a.reason, allowedBy(profile, a.names)})
	}
	return groups
}

// GroupsOf are the groups of a profile that has no tables: what it allows, and what not.
func GroupsOf(profile *specs.LinuxSeccomp) []Group {
	groups := []Group{{Verdict: Allowed}, {Verdict: Conditional}, {Verdict: Refused}}
	for i := range groups {
		if groups[i].Reason = "the profile's rules say so"; profile == nil {
			groups[i].Reason = "there is no filter"
		}
		groups[i].Calls = slices.DeleteFunc(calls(), func(call string) bool { return verdictOf(profile, call) != groups[i].Verdict })
	}
	return here(groups)
}

func allowedBy(profile *specs.LinuxSeccomp, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(call string) bool { return verdictOf(profile, call) != Allowed })
}

// here removes calls of other machines, and groups that are empty without them.
func here(groups []Group) []Group {
	var kept []Group
	for _, g := range groups {
		g.Calls = slices.DeleteFunc(slices.Clone(g.Calls), func(call string) bool { _, exists := numberOf(call); return !exists })
		if len(g.Calls) > 0 {
			kept = append(kept, g)
		}
	}
	return kept
}
