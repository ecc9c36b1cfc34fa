package grant

import (
	"net/netip"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

var hostsOwn = netip.MustParseAddr("10.1.2.3")

func isHost(addr netip.Addr) bool { return addr == hostsOwn }

// TestNetGrantsAreAllowRules: --allow X and net:X give the same decisions, because they
// give the same rules.
func TestNetGrantsAreAllowRules(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"api.example.com", "*.example.com:8443", "10.0.0.0/8:*", "udp://9.9.9.9:53", "public", "private:22", "metadata", "10.1.2.3:80"} {
		rules := Rules([]Grant{given(t, "net:"+target, nil)}, isHost, now)
		grants, err := egress.New(egress.Config{Rules: rules, IsHost: isHost})
		if err != nil || len(rules) != 1 || rules[0].Source != "grant root" || rules[0].Deny {
			t.Errorf("%s: %+v, %v", target, rules, err)
			continue
		}
		flags, err := egress.New(egress.Config{Rules: []agent.EgressRule{{Target: target, Source: "grant root"}}, IsHost: isHost})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := grants.Explain(), flags.Explain(); len(got) != 1 || got[0] != want[0] {
			t.Errorf("%s: %+v, want %+v", target, got, want)
		}
	}
}

func TestOnlyLiveNetGrantsAreRules(t *testing.T) {
	t.Parallel()
	live := given(t, "net:a.example", func(r *Request) { r.ID, r.Expires = "live", now.Add(1) })
	spent, damaged := live, live
	spent.UsesLeft, damaged.Pattern = 0, "http://a.example"
	grants := []Grant{given(t, "tool:a.example", nil), spent, damaged, live, {}}
	if rules := Rules(grants, nil, now); len(rules) != 1 || rules[0] != (agent.EgressRule{Target: "a.example", Source: "grant live"}) {
		t.Errorf("%+v", rules)
	}
	if rules := Rules(grants, nil, now.Add(1)); rules != nil {
		t.Errorf("expired: %+v", rules)
	}
}

// A rule that names the host's own address opens it, a network that contains it does not.
// So an agent could derive its way to the host. The control is root's own grant.
func TestNobodyDerivesTheHostsAddress(t *testing.T) {
	t.Parallel()
	to := egress.Connection{Proto: egress.TCP, Target: netip.AddrPortFrom(hostsOwn, 80), Looked: true}
	opens := func(g Grant) bool {
		rules, err := egress.New(egress.Config{Mode: agent.NetworkAllowlist, Rules: Rules([]Grant{g}, isHost, now), IsHost: isHost})
		if err != nil {
			t.Fatal(err)
		}
		return rules.Connect(to).Allowed
	}
	if !opens(given(t, "net:10.1.2.3", nil)) {
		t.Error("control: root's grant does not open it")
	}
	for _, parent := range []string{"net:10.0.0.0/8", "net:private", "net:10.1.2.3"} {
		g, err := Derive(given(t, parent, nil), wanted(t, "net:10.1.2.3"), now)
		if err != nil || opens(g) {
			t.Errorf("from %s: %+v, %v", parent, g, err)
		}
		neighbour, err := Derive(given(t, parent, nil), wanted(t, "net:10.1.2.4"), now)
		if err == nil && len(Rules([]Grant{neighbour}, isHost, now)) != 1 {
			t.Errorf("from %s: no rule for an address that is not the host's", parent)
		}
	}
}
