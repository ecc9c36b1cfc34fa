package seccomp

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

// Every call that libseccomp knows has an answer with a reason, and a refused one a group.
func TestEveryCallIsExplained(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		profile := mustProfile(t, name)
		for _, call := range calls() {
			e, err := Explain(name, call)
			if err != nil {
				t.Errorf("%s: %s: %v", name, call, err)
				continue
			}
			if e.Reason == "" || (e.Verdict == Refused && e.Group == "") || (e.Verdict == Conditional) != (e.Allowed != "") || (e.Verdict == Allowed) != (e.Answer == "") {
				t.Errorf("%s: %+v", name, e)
			}
			// A call that is allowed, is so with these arguments, too.
			if d := Decide(profile, call, [6]uint64{}); (e.Verdict == Allowed && !d.Allowed()) || (e.Verdict == Refused && d.String() != e.Answer) {
				t.Errorf("%s: %+v, but %v", name, e, d)
			}
		}
	}
}

func TestExplanations(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		profile, call string
		verdict       Verdict
		group, answer string
		words         string
	}{
		{Standard, "read", Allowed, "ordinary", "", "docker's default profile"},
		{Standard, "mount", Refused, "mounts", "EPERM", "may not change mounts"},
		{Standard, "clone", Conditional, "namespaces", "EPERM", "own namespaces"},
		{Standard, "clone3", Refused, "namespaces", "ENOSYS", "behind a pointer"},
		{Strict, "socket", Conditional, "sockets", "EPERM", "no network"},
		{Minimal, "socket", Refused, "sockets", "EPERM", "has no peer"},
		{Minimal, "read", Allowed, "descriptors", "", "read, written"},
		{Minimal, "fork", Refused, "processes", "EPERM", "one process"},
		{Minimal, "keyctl", Refused, "keyrings", "EPERM", "namespace"},
		{Unconfined, "keyctl", Allowed, "keyrings", "", "standard refuses it"},
		{Standard, "socketcall", Refused, "foreign", "ENOSYS", "32-bit"},
	} {
		e, err := Explain(row.profile, row.call)
		if err != nil || e.Verdict != row.verdict || e.Group != row.group || e.Answer != row.answer || !strings.Contains(e.Reason, row.words) {
			t.Errorf("%s: %+v, %v; want %+v", row.profile, e, err, row)
		}
	}
	if _, err := Explain(Standard, "opne"); err == nil || !strings.Contains(err.Error(), `"opne"`) {
		t.Errorf("a name that does not exist: %v", err)
	}
	if _, err := Explain("nosuch", "open"); err == nil {
		t.Error("a profile that does not exist is explained")
	}
}

// Each call of this machine is in one group of each profile, by its verdict.
func TestGroupsHaveEveryCall(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		groups, err := Groups(name)
		if err != nil {
			t.Fatal(err)
		}
		profile := mustProfile(t, name)
		for label, groups := range map[string][]Group{name: groups, "without tables: " + name: GroupsOf(profile)} {
			var all []string
			for _, g := range groups {
				all = append(all, g.Calls...)
				for _, call := range g.Calls {
					if v := verdictOf(profile, call); v != g.Verdict {
						t.Errorf("%s: %s is %s, in a group that is %s", label, call, v, g.Verdict)
					}
				}
			}
			if slices.Sort(all); !slices.Equal(all, calls()) {
				t.Errorf("%s: %d calls in its groups, %d on this machine", label, len(all), len(calls()))
			}
		}
	}
}

// A minimal allowance is needed: strict allows what is in it, and no refusal takes it back.
func TestAllowancesAreNotIdle(t *testing.T) {
	t.Parallel()
	strict, minimal := mustProfile(t, Strict), mustProfile(t, Minimal)
	for _, row := range minimalAllowances {
		for _, name := range row.names {
			if !named(strict, name) || !named(minimal, name) || verdictOf(minimal, name) == Refused {
				if _, exists := numberOf(name); exists {
					t.Errorf("%s: %s is allowed in the table only", row.group, name)
				}
			}
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	standard, strict := mustProfile(t, Standard), mustProfile(t, Strict)
	find := func(list []Difference, call string) Difference {
		for _, d := range list {
			if d.Call == call {
				return d
			}
		}
		return Difference{}
	}
	c := Compare(strict, standard)
	if len(c.OnlyA) != 0 || find(c.OnlyB, "msgget").B != Allowed || find(c.OnlyB, "memfd_create").B != Conditional || find(c.Other, "socket").A != Conditional || find(c.Other, "clone").Call != "" {
		t.Errorf("strict and standard: %+v", c)
	}
	if c := Compare(standard, nil); len(c.OnlyA) != 0 || find(c.OnlyB, "mount").B != Allowed || find(c.Other, "ioctl").B != Allowed {
		t.Errorf("standard and none: %+v", c)
	}
	if c := Compare(standard, mustProfile(t, Standard)); len(c.OnlyA)+len(c.OnlyB)+len(c.Other) != 0 {
		t.Errorf("a profile and itself: %+v", c)
	}
	for _, a := range Names() {
		for _, b := range Names() {
			there, back := Compare(mustProfile(t, a), mustProfile(t, b)), Compare(mustProfile(t, b), mustProfile(t, a))
			if len(there.OnlyA) != len(back.OnlyB) || len(there.OnlyB) != len(back.OnlyA) || len(there.Other) != len(back.Other) {
				t.Errorf("%s and %s: not the same both ways", a, b)
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, name := range filtered {
		if w := Warnings(mustProfile(t, name)); len(w) != 0 {
			t.Errorf("%s: %+v", name, w)
		}
	}
	p, err := Parse([]byte(document(`{"names":["read","mount","fsopen","unshare"],"action":"SCMP_ACT_ALLOW"}`,
		`{"names":["keyctl"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":0,"op":"SCMP_CMP_EQ"}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	got := Warnings(p)
	slices.SortFunc(got, func(a, b Warning) int { return cmp.Compare(a.Group, b.Group) })
	if len(got) != 3 || got[0].Group != "keyrings" || got[1].Group != "mounts" || len(got[1].Calls) != 2 || got[2].Group != "namespaces" || got[2].Reason == "" {
		t.Errorf("%+v", got)
	}
	if w := Warnings(nil); len(w) < 15 {
		t.Errorf("no filter has %d warnings only", len(w))
	}
}

// Each row has a group of one word.
func TestEachRowHasAGroup(t *testing.T) {
	t.Parallel()
	word := func(group string) bool {
		return group != "" && strings.Trim(group, "abcdefghijklmnopqrstuvwxyz_-") == ""
	}
	for _, b := range builtins() {
		b = b.withoutSetID()
		for _, a := range b.allowances {
			if !word(a.group) {
				t.Errorf("%s: %v: %q", b.name, a.names, a.group)
			}
		}
		for _, r := range b.refusals {
			if !word(r.group) {
				t.Errorf("%s: %v: %q", b.name, r.names, r.group)
			}
		}
		for _, c := range b.conditions {
			if !word(c.group) {
				t.Errorf("%s: %s: %q", b.name, c.name, c.group)
			}
		}
	}
}
