package seccomp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Difference is a call that two profiles treat differently.
type Difference struct {
	Call string  `json:"call"`
	A    Verdict `json:"a"`
	B    Verdict `json:"b"`
}

// Comparison is how two profiles differ, each list sorted by call.
type Comparison struct {
	OnlyA []Difference `json:"only_a"` // A allows it, at least with some arguments, and B never
	OnlyB []Difference `json:"only_b"`
	// Other are the calls that both allow, but with other arguments. Rules are compared as they
	// are written, so two ways to write one condition differ.
	Other []Difference `json:"other_arguments"`
}

// Compare looks at all calls of this machine that libseccomp knows. nil is the unconfined
// profile.
func Compare(a, b *specs.LinuxSeccomp) Comparison {
	c := Comparison{OnlyA: []Difference{}, OnlyB: []Difference{}, Other: []Difference{}}
	for _, call := range calls() {
		d := Difference{call, verdictOf(a, call), verdictOf(b, call)}
		switch {
		case d.A != Refused && d.B == Refused:
			c.OnlyA = append(c.OnlyA, d)
		case d.A == Refused && d.B != Refused:
			c.OnlyB = append(c.OnlyB, d)
		case d.A != d.B || d.A == Conditional && !slices.Equal(conditionsOf(a, call), conditionsOf(b, call)):
			c.Other = append(c.Other, d)
		}
	}
	return c
}

// Docker is docker's default profile for a container without capabilities, as documents are
// resolved here.
func Docker() (*specs.LinuxSeccomp, error) {
	profile, err := dockerDefault()
	if err != nil {
		return nil, fmt.Errorf("cannot read docker's default profile: %w", err)
	}
	return profile, nil
}

// conditionsOf are a call's rules as sorted texts.
func conditionsOf(profile *specs.LinuxSeccomp, call string) []string {
	var texts []string
	for _, rule := range rulesOf(profile, call) {
		var args []string
		for _, arg := range rule.Args {
			args = append(args, fmt.Sprint(arg))
		}
		slices.Sort(args)
		texts = append(texts, decisionOf(rule.Action, rule.ErrnoRet).String()+strings.Join(args, " "))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Warning is a dangerous allowance of a document: calls of one group that standard refuses.
type Warning struct {
	Group  string   `json:"group"`
	Reason string   `json:"reason"` // why standard refuses them
	Calls  []string `json:"calls"`
}

// Warnings are the rows of standard whose calls the profile allows, at least with some
// arguments. Calls that standard allows under conditions are left to Compare.
func Warnings(profile *specs.LinuxSeccomp) []Warning {
	var warnings []Warning
	for _, row := range builtins()[0].refusals {
		var allowed []string
		for _, call := range row.names {
			if verdictOf(profile, call) != Refused {
				allowed = append(allowed, call)
			}
		}
		if len(allowed) > 0 {
			warnings = append(warnings, Warning{row.group, row.reason, allowed})
		}
	}
	return warnings
}

// Narrower reports whether every rule of narrow that lets a call pass lets through only what one
// rule of wide does. It is false where that cannot be decided rule by rule.
func Narrower(wide, narrow *specs.LinuxSeccomp, call string) bool {
	if wide == nil {
		return true
	}
	if narrow == nil || permissive(wide.DefaultAction) || permissive(narrow.DefaultAction) {
		return false
	}
	passing := func(profile *specs.LinuxSeccomp) []specs.LinuxSyscall {
		return slices.DeleteFunc(slices.Clone(rulesOf(profile, call)), func(r specs.LinuxSyscall) bool { return !permissive(r.Action) })
	}
	wider := passing(wide)
	for _, rule := range passing(narrow) {
		if !slices.ContainsFunc(wider, func(w specs.LinuxSyscall) bool { return implies(rule.Args, w.Args) }) {
			return false
		}
	}
	return true
}

// implies reports whether arguments that satisfy all of narrow satisfy all of wide.
func implies(narrow, wide []specs.LinuxSeccompArg) bool {
	return !slices.ContainsFunc(wide, func(w specs.LinuxSeccompArg) bool {
		return !slices.ContainsFunc(narrow, func(n specs.LinuxSeccompArg) bool {
			if n == w {
				return true
			}
			// Value is the mask and ValueTwo what is under it.
			return n.Index == w.Index && n.Op == specs.OpMaskedEqual && w.Op == specs.OpMaskedEqual &&
				n.Value&w.Value == w.Value && n.ValueTwo&w.Value == w.ValueTwo
		})
	})
}
