package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func TestNetworkFlags(t *testing.T) {
	rules := []agent.EgressRule{{Target: "api.example.com", Source: "--allow"}, {Target: "10.0.0.0/8:5432", Source: "--allow"},
		{Deny: true, Target: "*.example.org", Source: "--deny"}}
	for _, row := range []struct {
		args string
		mode string
		want agent.Egress
	}{
		{"", agent.NetworkNone, agent.Egress{}},
		{"--network public", agent.NetworkPublic, agent.Egress{}},
		{"--network host", agent.NetworkHost, agent.Egress{}},
		{"--allow api.example.com --allow 10.0.0.0/8:5432 --deny *.example.org", agent.NetworkAllowlist, agent.Egress{Rules: rules}},
		{"--network ask --allow api.example.com", agent.NetworkAllowlist, agent.Egress{Rules: rules[:1]}},
		{"--network public --deny *.example.org", agent.NetworkPublic, agent.Egress{Rules: rules[2:]}},
		{"--host-port 11434 --host-port 80 --host-port 80", agent.NetworkNone, agent.Egress{HostPorts: []uint16{80, 11434}}},
		{"-p 8080:80/tcp -p 0.0.0.0:0:81 --publish [::1]:90:90", agent.NetworkNone, agent.Egress{Publish: []agent.PublishedPort{
			{Host: netip.MustParseAddrPort("127.0.0.1:8080"), Port: 80}, {Host: netip.MustParseAddrPort("0.0.0.0:0"), Port: 81},
			{Host: netip.MustParseAddrPort("[::1]:90"), Port: 90}}}},
		{"--network public --dns 192.0.2.1 --dns [2001:db8::1]:5353", agent.NetworkPublic, agent.Egress{DNS: []netip.AddrPort{
			netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("[2001:db8::1]:5353")}}},
		{"--network public --net-connections 9 --net-rate 8 --net-bytes 7K", agent.NetworkPublic,
			agent.Egress{Limits: agent.EgressLimits{Connections: 9, PerSecond: 8, Bytes: 7 << 10}}},
	} {
		b := newBench(t)
		b.cloved() // keeps questions
		spec := b.spec(append(strings.Fields(row.args), "--", "true")...)
		if row.want.Limits == (agent.EgressLimits{}) {
			row.want.Limits = agent.EgressLimits{Connections: 1024, PerSecond: 200}
		}
		if spec.Network != row.mode || !reflect.DeepEqual(spec.Egress, row.want) {
			t.Errorf("%s: %s %+v, want %s %+v", row.args, spec.Network, spec.Egress, row.mode, row.want)
		}
	}
}

// --network ask is short for an allowlist with questions, wherever a network is said.
func TestNetworkAskIsAnAllowlistThatAsks(t *testing.T) {
	for _, args := range []string{"--network ask", "--network allowlist --ask net", "--ask net", "--network ask --ask net", "--policy asks", "--policy asks --network ask", "--policy asks --allow example.com"} {
		b := newBench(t)
		b.cloved()
		b.host.Policies = []string{b.host.Dir}
		if err := os.WriteFile(filepath.Join(b.host.Dir, "asks.yaml"), []byte("version: 1\nname: asks\nnetwork: {mode: ask}\nwiden: {network.mode: it asks, ask: it asks}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if spec := b.spec(append(strings.Fields(args), "--", "true")...); spec.Network != agent.NetworkAllowlist || !slices.Equal(spec.Kernel.Asks, []string{agent.AskNet}) {
			t.Errorf("%s: %s, %q", args, spec.Network, spec.Kernel.Asks)
		}
	}
	if spec := newBench(t).spec("--network", "allowlist", "--", "true"); len(spec.Kernel.Asks) > 0 {
		t.Errorf("the control: %q", spec.Kernel.Asks)
	}
}

// TestNetworkRefusals: each is one clear line with a hint, and nothing runs.
func TestNetworkRefusals(t *testing.T) {
	for args, want := range map[string]string{
		"--network maybe":                        "not a network mode",
		"--network none --allow example.com":     "allows nothing",
		"--network host --allow example.com":     "takes no rules",
		"--network host -p 80:80":                "takes no rules",
		"--allow https://example.com/x":          "--allow",
		"--allow 0x7f.1":                         "--allow",
		"--allow localhost":                      "--allow",
		"--deny *.com":                           "--deny",
		"--host-port 0":                          "not a port",
		"--host-port 70000":                      "not a port",
		"--host-port 080":                        "not a port",
		"-p 80":                                  "names one port",
		"-p a:80":                                "not a port",
		"-p 80:0":                                "not a port",
		"-p example.com:80:80":                   "not an address",
		"-p 80:80 -p 80:80":                      "published twice",
		"--network public --dns dns.example.com": "not a name server",
		"--network public --dns 192.0.2.1:0":     "not a name server",
		"--dns 192.0.2.1":                        "no name",
		"--network public --net-connections 0":   "not a number",
		"--network public --net-rate many":       "not a number",
		"--network public --net-bytes 12X":       "--net-bytes",
	} {
		stderr := newBench(t).refuse(append(strings.Fields(args), "--", "true")...)
		if !strings.Contains(stderr, want) || !strings.Contains(stderr, "hint:") {
			t.Errorf("%s: %s", args, stderr)
		}
	}
}

func TestWhy(t *testing.T) {
	for _, row := range []struct {
		args   string
		status int
		say    string
	}{
		{"why api.example.com --allow api.example.com", 0, "reaches"},
		{"why api.example.com:8080 --allow api.example.com", 1, "--allow api.example.com:8080"},
		{"why api.example.com", 1, "does not reach"},
		{"why 169.254.169.254:80 --network public", 1, "metadata"},
		{"why 2130706433 --network public", 1, ""},
		{"why udp://9.9.9.9:53 --allow udp://9.9.9.9:53", 0, "reaches"},
		{"why a.example.com --allow *.example.com --deny a.example.com", 1, "--deny"},
	} {
		status, stdout, stderr := newBench(t).clove(strings.Fields(row.args)...)
		if status != row.status || !strings.Contains(stdout+stderr, row.say) {
			t.Errorf("%s: %d\n%s%s", row.args, status, stdout, stderr)
		}
	}
}

func TestExplainNetworkRunsNothing(t *testing.T) {
	b := newBench(t)
	status, stdout, _ := b.clove("run", "--explain-network", "--allow", "API.example.com.", "--deny", "10.0.0.0/8", "-p", "8080:80", "--", "true")
	for _, want := range []string{"mode allowlist", "api.example.com", "80,443", "--allow", "deny", "10.0.0.0/8", "publish"} {
		if status != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%d, without %q:\n%s", status, want, stdout)
		}
	}
}
