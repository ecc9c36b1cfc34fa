package runtime

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// shadowedSpec is a run whose shadow grants less.
func shadowedSpec() agent.Spec {
	s := testSpec()
	s.Kernel.Grants = []string{"tool:*", "model:small", "audit:acme"}
	other := s
	other.Policy, other.Kernel.Grants = agent.Policy{Name: "strict"}, []string{"tool:read"}
	s.Shadow = agent.ShadowOf(other)
	return s
}

func newTestWatcher(t *testing.T, spec agent.Spec) *shadowRecorder {
	t.Helper()
	w, err := newShadowRecorder(spec, agent.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Calls that a grant allowed are held against the shadow's grants. The controls: what both grant,
// what was refused anyway, and a run without a shadow.
func TestAShadowSeesCalls(t *testing.T) {
	t.Parallel()
	spec := shadowedSpec()
	w := newTestWatcher(t, spec)
	check := func(what string, allowed bool) {
		result, _ := json.Marshal(api.GrantCheckResult{Allowed: allowed})
		params, _ := json.Marshal(api.GrantCheckParams{What: what})
		w.called(agents.GrantCheck.Name, params, result)
	}
	check("tool:read", true)
	check("tool:write", true)
	check("tool:write", true)
	check("tool:other", false)
	w.called(agents.AuditRead.Name, json.RawMessage(`{"namespace":"acme"}`), nil)
	w.called(agents.AgentGet.Name, nil, nil)
	record := agent.Record{WallMS: 7, Usage: agent.Usage{Models: []agent.ModelUse{{Model: "small", Calls: 3}}}}
	network := []agent.Denial{{Time: time.Unix(1, 0), Kind: "network", Target: "tcp://a:1", Rule: "r", Count: 4}}
	w.enter(&record, spec, network, nil, false)
	text, _ := json.Marshal(record.Shadow.Denials)
	if record.Shadow.Refused != 10 || record.Shadow.Policy.Name != "strict" || len(record.Shadow.Denials) != 4 || record.Shadow.Denials[0].Target != "tcp://a:1" {
		t.Errorf("%+v", record.Shadow)
	}
	for _, want := range []string{`"target":"tool:write","rule":"no grant covers it","count":2`, `"target":"audit:acme","rule":"no grant covers it","count":1`, `"kind":"model","target":"small","rule":"no grant covers it","count":3`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("without %s: %s", want, text)
		}
	}
	none := newTestWatcher(t, testSpec())
	none.called(agents.GrantCheck.Name, nil, nil)
	plain := agent.Record{}
	if none.enter(&plain, testSpec(), nil, nil, false); plain.Shadow != nil {
		t.Errorf("without a shadow: %+v", plain.Shadow)
	}
}

// The record holds so many targets; the others are counted.
func TestAShadowIsBounded(t *testing.T) {
	t.Parallel()
	w := newTestWatcher(t, shadowedSpec())
	for i := range agent.ShadowDenialsMost + 30 {
		w.add(agent.Denial{Kind: "network", Target: strconv.Itoa(i), Count: 2})
	}
	w.add(agent.Denial{Kind: "network", Target: "0", Count: 1})
	record := agent.Record{}
	w.enter(&record, w.spec, nil, nil, false)
	if u := record.Shadow; len(u.Denials) != agent.ShadowDenialsMost || u.Others != 60 || u.Refused != int64(2*(agent.ShadowDenialsMost+30)+1) {
		t.Errorf("%d, %d others of %d", len(u.Denials), u.Others, u.Refused)
	}
}

// A shadow that cannot be decided is refused before anything is made, where the request arrives and at the start.
func TestAShadowThatCannotBeDecided(t *testing.T) {
	t.Parallel()
	if err := CheckRules(shadowedSpec(), agent.Owner{}); err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, change := range map[string]func(*agent.Shadow){
		"rules": func(s *agent.Shadow) {
			s.Network, s.Egress.Rules = agent.NetworkAllowlist, []agent.EgressRule{{Target: "a b"}}
		},
		"grants": func(s *agent.Shadow) { s.Kernel.Grants = []string{"nonsense"} },
		"filter": func(s *agent.Shadow) { s.Seccomp = agent.Seccomp{Profile: "/x.json", Document: []byte("{")} },
		"metadata": func(s *agent.Shadow) {
			s.Network, s.Egress.Rules = agent.NetworkAllowlist, []agent.EgressRule{{Target: "metadata", Source: "policy strict"}}
		},
	} {
		spec := shadowedSpec()
		change(spec.Shadow)
		if err := CheckRules(spec, agent.Owner{UID: 1000}); err == nil || agent.FailureOf(err).Step != "--policy-shadow" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
