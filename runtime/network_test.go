package runtime

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/egress/broker"
)

func TestNetworkFilesOfEachMode(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	if resolv, hosts, err := networkFiles(spec); resolv+hosts != "" || err != nil {
		t.Errorf("none: %q, %q, %v", resolv, hosts, err)
	}
	spec.Network = agent.NetworkAllowlist
	resolv, hosts, err := networkFiles(spec)
	if !strings.Contains(resolv, "nameserver 127.0.0.11\n") || strings.Count(resolv, "nameserver") != 1 || hosts != "" || err != nil {
		t.Errorf("allowlist: %q, %q, %v", resolv, hosts, err)
	}
	own, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	spec.Network = agent.NetworkHost
	if _, hosts, err = networkFiles(spec); hosts != string(own) || err != nil {
		t.Errorf("host: %q, %v", hosts, err)
	}
}

func TestOnlyARunWithAGateHasRules(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		network string
		egress  agent.Egress
		gated   bool
	}{
		{agent.NetworkNone, agent.Egress{}, false},
		{agent.NetworkHost, agent.Egress{}, false},
		{agent.NetworkPublic, agent.Egress{}, true},
		{agent.NetworkAllowlist, agent.Egress{}, true},
		{agent.NetworkNone, agent.Egress{HostPorts: []uint16{80}}, true},
		{agent.NetworkNone, agent.Egress{Publish: []agent.PublishedPort{{Port: 80}}}, true},
	} {
		spec := testSpec()
		spec.Network, spec.Egress = row.network, row.egress
		if spec.Gated() != row.gated {
			t.Errorf("%s %+v: gated %v", row.network, row.egress, !row.gated)
		}
	}
}

func TestADecisionIsOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := &decisionLog{agent: "0123456789abcdef", to: &out, outbox: newOutbox(1)}
	d := broker.Decision{Outcome: broker.OutcomeDenied, Kind: broker.KindTCP, Name: "a\nb", Address: netip.MustParseAddrPort("192.0.2.1:80")}
	if err := log.outbox.until(func() error { log.write(d); log.write(d); return nil }); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	var read map[string]any
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &read) != nil || read["agent"] != "0123456789abcdef" || read["verdict"] != "denied" {
		t.Errorf("%q", out.String())
	}
	(&decisionLog{}).write(d) // no log was asked for
}
