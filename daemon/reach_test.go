package daemon

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
)

func allowed(targets ...string) (rules []agent.EgressRule) {
	for _, target := range targets {
		rules = append(rules, agent.EgressRule{Target: target, Source: "--allow"})
	}
	return rules
}

// networked is a spec with network rules.
func networked(targets ...string) agent.Spec {
	s := spec("a")
	s.Network, s.Egress.Rules = agent.NetworkAllowlist, allowed(targets...)
	s.Egress.Limits.Connections, s.Egress.Limits.PerSecond = 8, 8
	return s
}

// TestUsersStayBelowTheCeiling: at a start and at an update, by any requester. Root's own
// runs are not limited.
func TestUsersStayBelowTheCeiling(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Users.Allow = []string{"*.example.com", "udp://9.9.9.9:53"} })
	for what, row := range map[string]struct {
		change func(*agent.Spec)
		within bool
	}{
		"none":          {func(*agent.Spec) {}, true},
		"a name":        {func(s *agent.Spec) { s.Egress.Rules = allowed("api.example.com") }, true},
		"a deny rule":   {func(s *agent.Spec) { s.Egress.Rules = []agent.EgressRule{{Target: "10.1.2.3", Deny: true}} }, true},
		"the server":    {func(s *agent.Spec) { s.Egress.DNS = []netip.AddrPort{netip.MustParseAddrPort("9.9.9.9:53")} }, true},
		"another name":  {func(s *agent.Spec) { s.Egress.Rules = allowed("api.example.com", "evil.test") }, false},
		"public":        {func(s *agent.Spec) { s.Network, s.Egress.Rules = agent.NetworkPublic, nil }, false},
		"other servers": {func(s *agent.Spec) { s.Egress.DNS = []netip.AddrPort{netip.MustParseAddrPort("8.8.8.8:53")} }, false},
	} {
		s := networked()
		row.change(&s)
		if err := r.d.limits().checkSpec(r.as(rootCaller), s); err != nil {
			t.Errorf("%s: root: %v", what, err)
		}
		err := r.d.limits().checkSpec(r.as(ownerCaller), s)
		if (err == nil) != row.within {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil {
			wantCode(t, err, api.CodeDenied)
		}
	}
	r.add("mine", ownerCaller.owner, agent.StateRunning)
	must(t, r.d.cache.refresh())
	for _, who := range []caller{ownerCaller, rootCaller} {
		c := r.as(who)
		c.run, _ = r.d.cache.resolve("1000/mine", who.principal)
		c.run.Spec.Network = agent.NetworkAllowlist
		rules := allowed("evil.test")
		_, err := r.d.live().update(c, api.UpdateParams{Update: agent.Update{Rules: &rules}})
		if err == nil {
			t.Fatalf("%s goes beyond it by an update", who)
		}
		wantCode(t, err, api.CodeDenied)
	}
}

// TestMetadataIsForRoot: also without a ceiling.
func TestMetadataIsForRoot(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s := networked("169.254.169.254")
	must(t, r.d.limits().checkSpec(r.as(rootCaller), s))
	if err := r.d.limits().checkSpec(r.as(ownerCaller), s); agent.KindOf(err) != agent.KindPrivilege {
		t.Errorf("a user may allow it: %v", err)
	}
}

// TestALowerCeilingHoldsAtTheNextStart: a queued run was admitted under a higher one.
func TestALowerCeilingHoldsAtTheNextStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.d.reconciler.metered = func(agent.Run) (bool, error) { return false, nil } // kernel.db is not open
	s := networked("api.example.com")
	run := agent.Run{Spec: s, Owner: ownerCaller.owner}
	answers := func() supervisor.Answer {
		answer := r.d.reconciler.expect(s.ID)
		r.d.reconciler.begin(run)
		return <-answer
	}
	if a := answers(); !a.Started {
		t.Fatalf("control: without a ceiling: %+v", a.Error)
	}
	r.d.current.Store(&Config{Users: UserLimits{Allow: []string{"*.example.net"}}})
	if a := answers(); a.Started || a.Error == nil || a.Error.Code != api.CodeDenied {
		t.Errorf("with one: %+v", a)
	}
}

// TestTheCeilingBoundsEverybody: root too, at a request, at an update and at the next start.
func TestTheCeilingBoundsEverybody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, func(c *Config) { c.Policies = dir })
	s := spec("a")
	must(t, r.d.limits().checkSpec(r.as(rootCaller), s)) // without a ceiling
	text := fmt.Sprintf("version: 1\nname: host\nlimits: {memory: %d}\n", s.Limits.MemoryBytes)
	must(t, os.WriteFile(filepath.Join(dir, "host.yaml"), []byte(text), 0o600))
	for _, who := range []caller{ownerCaller, rootCaller} {
		must(t, r.d.limits().checkSpec(r.as(who), s))
		more := s
		more.Limits.MemoryBytes *= 2
		more.Limits.MemorySwapBytes *= 2
		err := r.d.limits().checkSpec(r.as(who), more)
		if err == nil {
			t.Fatalf("%s goes beyond it", who)
		}
		wantCode(t, err, api.CodeDenied)
	}
	r.add("mine", ownerCaller.owner, agent.StateRunning)
	must(t, r.d.cache.refresh())
	c := r.as(rootCaller)
	c.run, _ = r.d.cache.resolve("1000/mine", rootCaller.principal)
	more := s.Limits.MemoryBytes * 2
	// A run above it may be narrowed, in that place and in others.
	c.run.Spec.Limits.MemoryBytes, c.run.Spec.Limits.MemorySwapBytes = 3*more, 3*more
	pids := c.run.Spec.Limits.Pids
	if _, err := r.d.live().update(c, api.UpdateParams{Update: agent.Update{MemoryBytes: &more, Pids: &pids}}); err != nil && strings.Contains(err.Error(), "allows no agent") {
		t.Errorf("it cannot be narrowed: %v", err)
	}
	c.run.Spec.Limits.MemoryBytes, c.run.Spec.Limits.MemorySwapBytes = s.Limits.MemoryBytes, s.Limits.MemorySwapBytes
	_, err := r.d.live().update(c, api.UpdateParams{Update: agent.Update{MemoryBytes: &more}})
	if err == nil {
		t.Fatal("an update goes beyond it")
	}
	wantCode(t, err, api.CodeDenied)
}

// TestTheCeilingHoldsAtTheNextStart: also for a run that was queued before there was one, and
// for a rule that a grant adds to a live run.
func TestTheCeilingHoldsAtTheNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, func(c *Config) { c.Policies = dir })
	s := networked("api.example.com")
	rule := agent.EgressRule{Target: "evil.test:443"}
	must(t, r.d.reconciler.admits(agent.Run{Spec: s, Owner: rootCaller.owner})) // the control: no ceiling
	must(t, r.d.checkNet(rule, rootCaller.owner))
	must(t, os.WriteFile(filepath.Join(dir, "host.yaml"), []byte("version: 1\nname: host\nnetwork: {mode: allowlist, allow: ['*.example.net']}\n"), 0o600))
	for what, err := range map[string]error{"the start": r.d.reconciler.admits(agent.Run{Spec: s, Owner: rootCaller.owner}), "the grant": r.d.checkNet(rule, rootCaller.owner)} {
		if err == nil {
			t.Fatalf("%s goes beyond it", what)
		}
		wantCode(t, err, api.CodeDenied)
	}
}
