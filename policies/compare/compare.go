package compare

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// Now is what a comparison has to know of the parent and of the host beside the specs. The zero
// Now knows nothing: then nothing below a mount of the parent's counts as a part of it.
type Now struct {
	Time     time.Time // from which the child's time counts
	Deadline time.Time // when the parent ends at the latest; zero: it has no time limit
	// Beneath reports whether the host's file inner, whose path is below outer, is on the file
	// system of outer, and has its owner if root owns the runs. A mount shows the files of its
	// source's owner as the agent's own, and another file system below a workspace not at all.
	Beneath func(outer, inner string) bool
	IsHost  func(netip.Addr) bool // as egress.Config has it
	// Shown is a file of clove's own, which a child may see read-only whatever its parent sees; zero: none.
	Shown agent.Bind
}

// Difference is one field in which the child would have more than its parent.
type Difference struct {
	Field  string `json:"field"`  // of a Row
	Parent string `json:"parent"` // what the parent has, in words
	Child  string `json:"child"`  // what the child would have
	Hint   string `json:"hint"`   // how to narrow the child
}

// Err is the difference as the refusal of the child.
func (d Difference) Err() error {
	return &agent.Error{Kind: agent.KindPrivilege, Step: d.Field, Message: fmt.Sprintf("the child would have more than its parent: %s instead of %s", d.Child, d.Parent), Hint: d.Hint}
}

// Wider returns each field in which a child with this spec would have more than its parent, in
// the order of Rows. Both specs are valid, with canonical paths. What cannot be decided counts
// as more.
func Wider(parent, child agent.Spec, now Now) (all []Difference) {
	p := pair{parent, child, now}
	for _, row := range Rows() {
		if row.more == nil {
			continue
		}
		for _, d := range row.more(p) {
			d.Field, d.Hint = row.Field, cmp.Or(row.hint, d.Hint)
			all = append(all, d)
		}
	}
	return all
}

// Inherit gives the child the parent's value of each limit and denial that it leaves out. It does
// not change what the child asks for.
func Inherit(parent, child agent.Spec, now Now) agent.Spec {
	for _, row := range Rows() {
		if row.inherit != nil {
			row.inherit(pair{parent, child, now}, &child)
		}
	}
	return child
}

// pair is what rows compare.
type pair struct {
	parent, child agent.Spec
	Now
}

// setting compares as the row of policies/settings with this key does.
func setting(key string) func(pair) []Difference {
	return func(p pair) (all []Difference) {
		for _, d := range settings.Find(key).Wider(p.parent, p.child) {
			all = append(all, Difference{Parent: d.From, Child: d.To, Hint: "narrow " + key + " to " + d.From})
		}
		return all
	}
}

// more is a difference, if is.
func more(is bool, parent, child any) []Difference {
	if !is {
		return nil
	}
	return []Difference{{Parent: orNone(parent), Child: orNone(child)}}
}

func orNone(value any) string {
	if text := fmt.Sprint(value); text != "" {
		return text
	}
	return "none"
}

// switched is more for what the child switches on and the parent does not.
func switched(at func(agent.Spec) bool) func(pair) []Difference {
	return func(p pair) []Difference { return more(at(p.child) && !at(p.parent), "no", "yes") }
}

// noOther is more for a text that is the parent's or absent.
func noOther(at func(agent.Spec) string) func(pair) []Difference {
	return func(p pair) []Difference {
		has, asks := at(p.parent), at(p.child)
		return more(asks != "" && asks != has, has, asks)
	}
}

// absent gives the child the parent's value where its own is the zero value.
func absent[T comparable](at func(*agent.Spec) *T) func(pair, *agent.Spec) {
	return func(p pair, child *agent.Spec) {
		var zero T
		if *at(child) == zero {
			*at(child) = *at(&p.parent)
		}
	}
}

// absentList is absent for a list, where nil has the meaning of all.
func absentList(at func(*agent.Spec) *[]string) func(pair, *agent.Spec) {
	return func(p pair, child *agent.Spec) {
		if *at(child) == nil {
			*at(child) = *at(&p.parent)
		}
	}
}
