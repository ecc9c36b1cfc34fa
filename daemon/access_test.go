package daemon

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// The identities of the matrix. A caller who is not a member is refused before any method is
// looked up: TestMembers.
var (
	rootCaller  = caller{}
	ownerCaller = caller{principal: principal{owner: agent.Owner{UID: 1000, GID: 1000}}}
	otherCaller = caller{principal: principal{owner: agent.Owner{UID: 1001, GID: 1001}}}
)

// TestAccessMatrix checks each identity with each method. It repeats by hand what each access
// rule allows.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("mine", ownerCaller.owner, agent.StateRunning)
	must(t, r.d.cache.refresh())
	const passes = api.Code(0)
	want := map[api.Access]map[string]api.Code{
		api.AccessMember: {"root": passes, "owner": passes, "other": passes},
		api.AccessOwner:  {"root": passes, "owner": passes, "other": api.CodeNotFound},
		api.AccessRoot:   {"root": passes, "owner": api.CodeDenied, "other": api.CodeDenied},
		api.AccessAgent:  {"root": passes, "owner": passes, "other": api.CodeNotFound},
		api.AccessSelf:   {"root": api.CodeDenied, "owner": api.CodeDenied, "other": api.CodeDenied},
	}
	params, err := json.Marshal(api.RunParams{Run: "1000/mine"})
	must(t, err)
	for _, m := range methods.All() {
		for identity, peer := range map[string]caller{"root": rootCaller, "owner": ownerCaller, "other": otherCaller} {
			run, err := r.d.dispatcher().allow(peer.principal, m, decoded(m, params))
			var known *api.Error
			errors.As(err, &known)
			switch code := want[m.Access][identity]; {
			case code == passes && err != nil:
				t.Errorf("%s is refused %s: %v", identity, m.Name, err)
			case code != passes && (known == nil || known.Code != code):
				t.Errorf("%s and %s: %v, want code %d", identity, m.Name, err, code)
			case code == passes && (m.Access == api.AccessOwner || m.Access == api.AccessAgent) && run.Spec.Name != "mine":
				t.Errorf("%s and %s: it is about %q", identity, m.Name, run.Spec.Name)
			}
		}
	}
}

// TestAgentsMayNothingOfOthers: an agent does not have the rights of its run's owner. The
// control is the owner, root, who may call every method.
func TestAgentsMayNothingOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	own, other := r.add("own", agent.Owner{}, agent.StateRunning), r.add("other", agent.Owner{}, agent.StateRunning)
	must(t, r.d.cache.refresh())
	a := principal{owner: own.Owner, run: own.Spec.ID}
	for _, m := range methods.All() {
		for _, name := range []string{"own", "other"} {
			params, err := json.Marshal(api.RunParams{Run: name})
			must(t, err)
			_, err = r.d.dispatcher().allow(a, m, decoded(m, params))
			wantCode(t, err, api.CodeDenied)
			if _, err = r.d.dispatcher().allow(rootCaller.principal, m, decoded(m, params)); m.Access == api.AccessSelf {
				wantCode(t, err, api.CodeDenied)
			} else {
				must(t, err)
			}
		}
	}
	if a.root() || !a.sees(&own) || a.sees(&other) || (caller{principal: a}).member(0) {
		t.Errorf("root %t, sees its own run %t and another %t", a.root(), a.sees(&own), a.sees(&other))
	}
	s := spec("child")
	s.Network = agent.NetworkHost
	wantCode(t, r.d.limits().checkUser(r.as(caller{principal: a}), s), api.CodeDenied)
	must(t, r.d.limits().checkUser(r.as(rootCaller), s))
}

// However a run is named, it does not exist for other users; the error is the same as for an
// unused name.
func TestOthersCannotTellWhatExists(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("secret", ownerCaller.owner, agent.StateEnded)
	m, _ := methods.Find(methods.RunGet.Name)
	for ref, unknown := range map[string]string{"secret": "xsecret", "1000/secret": "1000/xsecret", string(run.Spec.ID): "x" + string(run.Spec.ID), string(run.Spec.ID)[:6]: "x" + string(run.Spec.ID)[:6]} {
		params, _ := json.Marshal(api.RunParams{Run: ref})
		if _, err := r.d.dispatcher().allow(ownerCaller.principal, m, decoded(m, params)); err != nil {
			t.Errorf("the owner names it %q: %v", ref, err)
		}
		_, hidden := r.d.dispatcher().allow(otherCaller.principal, m, decoded(m, params))
		wantCode(t, hidden, api.CodeNotFound)
		absent, _ := json.Marshal(api.RunParams{Run: unknown})
		_, missing := r.d.dispatcher().allow(otherCaller.principal, m, decoded(m, absent))
		if a, b := api.ErrorOf(hidden), api.ErrorOf(missing); len(a.Message)+1 != len(b.Message) || a.Data != b.Data {
			t.Errorf("%q and %q differ in more than the name", a.Message, b.Message)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who    string
		peer   caller
		group  int
		member bool
	}{
		{"root", rootCaller, 50, true},
		{"root without a group", rootCaller, -1, true},
		{"primary group", caller{principal: principal{owner: agent.Owner{UID: 7, GID: 50}}}, 50, true},
		{"another group", caller{principal: principal{owner: agent.Owner{UID: 7, GID: 7}}, groups: []uint32{4, 50}}, 50, true},
		{"no member", caller{principal: principal{owner: agent.Owner{UID: 7, GID: 7}}, groups: []uint32{4}}, 50, false},
		{"no group at all", caller{principal: principal{owner: agent.Owner{UID: 7, GID: 0}}, groups: []uint32{0}}, -1, false},
	} {
		if c.peer.member(c.group) != c.member {
			t.Errorf("%s: %v", c.who, !c.member)
		}
	}
}

// TestEveryMethodIsServed: each row of the table has a handler. The gate
// of the agent serves the methods for agents alone.
func TestEveryMethodIsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.serve()
	handlers := r.d.handlers()
	for _, m := range methods.All() {
		served := handlers[m.Name].serve != nil || m.Name == api.MethodCancel || m.Access == api.AccessSelf
		if served == (m.Shape == api.ShapeSession) {
			t.Errorf("%s (%s): served here: %v", m.Name, m.Shape, served)
		}
	}
	for name := range handlers {
		if _, known := methods.Find(name); !known {
			t.Errorf("%s is served and not in the table", name)
		}
	}
}

// Each option that is for root only is refused to other users, one by one. Root may use it,
// and the plain spec is accepted.
func TestUsersMayNotHave(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Users = UserLimits{Runs: 2, Memory: "128M", Disk: "128M"} })
	user := &request{Context: within(t), peer: ownerCaller}
	for what, row := range map[string]struct {
		rule   string
		change func(*agent.Spec)
	}{
		"binds":     {"files", func(s *agent.Spec) { s.Files.Binds = []agent.Bind{{Source: "/etc/shadow", Target: "/x"}} }},
		"rootfs":    {"rootfs", func(s *agent.Spec) { s.Files.Rootfs = "/srv" }},
		"prefixes":  {"prefixes", func(s *agent.Spec) { s.Files.Prefixes = []string{"/root/.pyenv"} }},
		"network":   {"network", func(s *agent.Spec) { s.Network = agent.NetworkHost }},
		"host port": {"host-port", func(s *agent.Spec) { s.Egress.HostPorts = []uint16{5432} }},
		"low port": {"publish", func(s *agent.Spec) {
			s.Egress.Publish = []agent.PublishedPort{{Host: address("127.0.0.1:80"), Port: 80}}
		}},
		"no filter":   {"seccomp", func(s *agent.Spec) { s.Seccomp.Profile = agent.SeccompUnconfined }},
		"own filter":  {"seccomp", func(s *agent.Spec) { s.Seccomp.Document = []byte("{}") }},
		"odd filter":  {"seccomp", func(s *agent.Spec) { s.Seccomp.Profile = "/tmp/x" }},
		"unenforced":  {"allow-unenforced", func(s *agent.Spec) { s.AllowUnenforced = []string{"memory"} }},
		"priority":    {"priority", func(s *agent.Spec) { s.Priority = 1 }},
		"much memory": {"memory", func(s *agent.Spec) { s.Limits.MemoryBytes = 1 << 30 }},
		"much disk":   {"disk", func(s *agent.Spec) { s.Limits.DiskBytes = 1 << 30 }},
		"much swap":   {"memory", func(s *agent.Spec) { s.Limits.MemorySwapBytes = 1 << 30 }},
		"any swap":    {"memory", func(s *agent.Spec) { s.Limits.MemorySwapBytes = -1 }},
		"much shm":    {"memory", func(s *agent.Spec) { s.Limits.ShmBytes = 1 << 30 }},
		"real time":   {"rlimits", func(s *agent.Spec) { s.Limits.Rlimits = []agent.Rlimit{{Name: "rtprio", Soft: 1 << 40, Hard: 1 << 40}} }},
		"odd rlimit":  {"rlimits", func(s *agent.Spec) { s.Limits.Rlimits = []agent.Rlimit{{Name: "x"}} }},
	} {
		bad := spec("a")
		row.change(&bad)
		if err := r.d.limits().checkUser(user, bad); err == nil {
			t.Errorf("%s: allowed", what)
		} else {
			wantCode(t, err, api.CodeDenied)
			wantRule(t, err, "user:"+row.rule)
		}
	}
	if err := r.d.limits().checkUser(user, spec("a")); err != nil {
		t.Errorf("the plain spec: %v", err)
	}
	r.add("one", ownerCaller.owner, agent.StateQueued)
	r.add("two", ownerCaller.owner, agent.StateRunning)
	r.add("not-mine", otherCaller.owner, agent.StateRunning)
	must(t, r.d.cache.refresh())
	err := r.d.limits().checkCount(user, spec("x"))
	wantCode(t, err, api.CodeBusy)
	wantRule(t, err, "user:runs")
}

// wantRule fails unless err says that this rule refused.
func wantRule(t *testing.T, err error, want string) {
	t.Helper()
	if got := api.ErrorOf(err).Data.Rule; got != want {
		t.Errorf("%v: the rule is %q, want %q", err, got, want)
	}
}

func address(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
