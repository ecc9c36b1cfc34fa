package agent

import (
	"strings"
	"testing"
)

// A shadow passes the checks of a run, and its mistakes are named as its own. The control is the
// same spec without the mistake.
func TestShadowsAreValidated(t *testing.T) {
	t.Parallel()
	shadowed := func() Spec {
		s := whole()
		s.Policy.Name = "strict"
		s.Shadow = ShadowOf(s)
		return s
	}
	if err := shadowed().Validate(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*Shadow){
		"shadow.policy.name":         func(s *Shadow) { s.Policy.Name = "" },
		"shadow.limits.memory_bytes": func(s *Shadow) { s.Limits.MemoryBytes = 1 },
		"shadow.network":             func(s *Shadow) { s.Network = "everything" },
		"shadow.seccomp.profile":     func(s *Shadow) { s.Seccomp.Profile = "" },
		"shadow.files.binds":         func(s *Shadow) { s.Files.Binds = []Bind{{Source: "relative", Target: "/a"}} },
		"shadow.egress.rules":        func(s *Shadow) { s.Egress.Rules = []EgressRule{{}} },
		"shadow.kernel":              func(s *Shadow) { s.Kernel.OnEnd = "rm" },
		"shadow.kernel.on_denial":    func(s *Shadow) { s.Kernel.OnDenial = "shout" },
	} {
		s := shadowed()
		change(s.Shadow)
		if err := s.Validate(); err == nil || FailureOf(err).Step != field || KindOf(err) != KindInvalid {
			t.Errorf("%s: %v", field, err)
		}
	}
	if s := shadowed(); s.Shadowed().Shadow != nil || s.Shadowed().Name != s.Name || s.Shadowed().Policy.Name != "strict" {
		t.Errorf("%+v", s.Shadowed())
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for want, use := range map[string]ShadowUse{
		"policy p would have refused nothing":                                        {},
		"policy p would have refused 1 action by 1 rule":                             {Refused: 1, Denials: []Denial{{Rule: "a"}}},
		"policy p would have refused 9 actions by 2 rules":                           {Refused: 9, Denials: []Denial{{Rule: "a"}, {Rule: "b", Target: "x"}, {Rule: "b"}}},
		"policy p would not have been enough in limits.memory, limits.pids":          {Limits: []ShadowLimit{{Place: "limits.memory"}, {Place: "limits.pids"}}},
		"have refused 1 action by 1 rule, and not have been enough in limits.output": {Refused: 1, Denials: []Denial{{}}, Limits: []ShadowLimit{{Place: "limits.output"}}},
	} {
		use.Policy.Name = "p"
		if got := use.Summary(); !strings.HasSuffix(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
