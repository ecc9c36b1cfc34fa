package agent

import (
	"cmp"
	"fmt"
	"strings"
)

// Shadow is a policy that is decided beside a run's own and recorded, and refuses nothing.
// Its values are what the run would have had under it; nothing of the host is opened for it.
type Shadow struct {
	Policy          Policy   `json:"policy"`
	User            User     `json:"user"`
	CapDrop         []string `json:"cap_drop,omitempty"`
	Limits          Limits   `json:"limits"`
	Files           Files    `json:"files"`
	Seccomp         Seccomp  `json:"seccomp"`
	Network         string   `json:"network"`
	Egress          Egress   `json:"egress"`
	Kernel          Kernel   `json:"kernel,omitzero"` // Socket, Grants, Budgets, AtEnd and OnDenial only
	AllowUnenforced []string `json:"allow_unenforced,omitempty"`
}

// ShadowOf is what a spec says under a policy.
func ShadowOf(s Spec) *Shadow {
	k := Kernel{Socket: s.Kernel.Socket, Grants: s.Kernel.Grants, Budgets: s.Kernel.Budgets, AtEnd: s.Kernel.AtEnd, OnDenial: s.Kernel.OnDenial}
	return &Shadow{Policy: s.Policy, User: s.User, CapDrop: s.CapDrop, Limits: s.Limits, Files: s.Files, Seccomp: s.Seccomp,
		Network: s.Network, Egress: s.Egress, Kernel: k, AllowUnenforced: s.AllowUnenforced}
}

// Shadowed is the spec that the run would have under its shadow; without one, the spec itself.
func (s Spec) Shadowed() Spec {
	o := s.Shadow
	if o == nil {
		return s
	}
	s.Shadow, s.Policy, s.User, s.CapDrop, s.Limits, s.Files, s.Seccomp = nil, o.Policy, o.User, o.CapDrop, o.Limits, o.Files, o.Seccomp
	s.Network, s.Egress, s.Kernel, s.AllowUnenforced = o.Network, o.Egress, o.Kernel, o.AllowUnenforced
	return s
}

// checkShadow makes the checks of a run under the shadow.
func checkShadow(s Spec) error {
	if s.Shadow == nil {
		return nil
	}
	if s.Shadow.Policy.Name == "" {
		return wrong("shadow.policy.name", "name the policy", "the shadow has no name")
	}
	if k := s.Shadow.Kernel; k.OnWarn != "" || k.OnEnd != "" || k.OnAsk != "" || k.OnAskKey != "" || k.Namespace != "" || k.ModelSetup != "" || k.ModelLog {
		return wrong("shadow.kernel", "omit them", "a shadow has neither callouts nor a namespace nor anything of models but grants")
	}
	if err := s.Shadowed().Validate(); err != nil {
		f := FailureOf(err)
		return wrong("shadow."+f.Step, f.Hint, "%s", f.Message)
	}
	return nil
}

// ShadowUse is what a run's shadow would have refused of what the run's own policy allowed.
type ShadowUse struct {
	Policy  Policy        `json:"policy"`
	Refused int64         `json:"refused"`          // all that it would have refused, those that are left out too
	Denials []Denial      `json:"denials"`          // by rule and target, the first first; at most ShadowDenialsMost
	Others  int64         `json:"others,omitempty"` // of Refused: of targets for which Denials has no space
	Limits  []ShadowLimit `json:"limits,omitempty"` // of the shadow's limits and budgets those that were exceeded
	Wider   []string      `json:"wider,omitempty"`  // places in which it allows more than the run's own policy: there it says nothing
	Unseen  []string      `json:"unseen,omitempty"` // places in which it is narrower, and which were not watched
}

// ShadowDenialsMost bounds ShadowUse.Denials.
const ShadowDenialsMost = 200

// ShadowLimit is a limit of a shadow that the run exceeded. Value and Peak are in the unit of
// the place: bytes, milliseconds, or a number.
type ShadowLimit struct {
	Place string `json:"place"` // key of a policy document; of a budget budgets.DIMENSION
	Value int64  `json:"value"`
	Peak  int64  `json:"peak"`
}

// Summary is what the shadow would have done, in one sentence without a full stop.
func (u ShadowUse) Summary() string {
	var parts []string
	if u.Refused > 0 {
		rules := map[string]bool{}
		for _, d := range u.Denials {
			rules[d.Kind+" "+d.Rule] = true
		}
		parts = append(parts, fmt.Sprintf("have refused %s by %s", several(u.Refused, "action"), several(int64(len(rules)), "rule")))
	}
	var places []string
	for _, l := range u.Limits {
		places = append(places, l.Place)
	}
	if len(places) > 0 {
		parts = append(parts, "not have been enough in "+strings.Join(places, ", "))
	}
	return "policy " + u.Policy.String() + " would " + cmp.Or(strings.Join(parts, ", and "), "have refused nothing")
}

func several(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
