//go:build root

package runtime

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// greeter is a server on the host that sends "hello" and then echoes.
func greeter(t *testing.T) (address string, port int) {
	t.Helper()
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if network, ok := i.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			address = network.IP.String()
		}
	}
	if address == "" { // the virtual machine of the tests has no network
		address = ownAddress(t)
	}
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			fmt.Fprintln(conn, "hello")
			go io.Copy(conn, conn)
		}
	}()
	return address, listener.Addr().(*net.TCPAddr).Port
}

// ownAddress gives the host an address of a range for documentation, which no other host has.
func ownAddress(t *testing.T) string {
	t.Helper()
	const address = "198.51.100.77"
	ip := func(verb string) {
		if out, err := exec.Command(testhost.Tool(t, "ip"), "address", verb, address+"/32", "dev", "lo").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	ip("add")
	t.Cleanup(func() { ip("del") })
	return address
}

func TestNewRulesHoldAtOnce(t *testing.T) {
	address, port := greeter(t)
	a := startLive(t, "exec sleep 1000", func(s *agent.Spec) { s.Network = agent.NetworkAllowlist })
	dial := fmt.Sprintf("exec 3<>/dev/tcp/%s/%d && read line <&3 && echo got $line", address, port)
	try := func() execResult { return a.exec(agent.Exec{Command: []string{"bash", "-c", dial}}, "") }
	rules := func(targets ...string) *[]agent.EgressRule {
		list := []agent.EgressRule{}
		for _, target := range targets {
			list = append(list, agent.EgressRule{Target: target, Source: "update"})
		}
		return &list
	}
	if r := try(); r.code == 0 {
		t.Fatalf("control: without a rule: %+v", r)
	}
	allowed := fmt.Sprintf("host:%d", port)
	if err := a.Update(agent.Update{Rules: rules(allowed)}); err != nil {
		t.Fatal(err)
	}
	if r := try(); r.stdout != "got hello\n" {
		t.Errorf("with a rule: %+v", r)
	}
	if stored := a.spec().Egress.Rules; len(stored) != 1 || stored[0].Target != allowed {
		t.Errorf("the store has %+v", stored)
	}
	for _, u := range []agent.Update{
		{Rules: rules("no such target!"), Pids: as[int64](300)},
		{Rules: rules(), Pids: as[int64](1)},
	} {
		if err := a.Update(u); err == nil {
			t.Errorf("%+v was taken", u)
		}
		if r := try(); r.stdout != "got hello\n" || *a.held().Pids != 512 {
			t.Errorf("after what was refused: %+v, %d pids", r, *a.held().Pids)
		}
	}
	ended := a.begin(context.Background(), fmt.Sprintf("exec bash -c '%s; echo ready; ! read line <&3'", dial[:len(dial)-len(" && echo got $line")]))
	if err := a.Update(agent.Update{Rules: rules()}); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r.code != 0 || r.err != nil {
		t.Errorf("the open connection: %+v", r)
	}
	if r := try(); r.code == 0 {
		t.Errorf("without a rule again: %+v", r)
	}
}

// TestADenyCutsWhatItForbids: it cuts nothing else; the other connection is the control. A
// connection that was cut is not counted as a denial; a later attempt is.
func TestADenyCutsWhatItForbids(t *testing.T) {
	address, kept := greeter(t)
	_, lost := greeter(t)
	allowed := []agent.EgressRule{{Target: fmt.Sprintf("host:%d", kept), Source: "--allow"}, {Target: fmt.Sprintf("host:%d", lost), Source: "--allow"}}
	a := startLive(t, "exec sleep 1000", func(s *agent.Spec) { s.Network, s.Egress.Rules = agent.NetworkAllowlist, allowed })
	connected := func(port int, then string) <-chan execResult {
		return a.begin(context.Background(), fmt.Sprintf("exec bash -c 'exec 3<>/dev/tcp/%s/%d; read line <&3; echo ready; %s'", address, port, then))
	}
	alive := connected(kept, `until [ -e /tmp/go ]; do sleep 0.02; done; echo more >&3; read line <&3; [ "$line" = more ]`)
	cut := connected(lost, "! read line <&3")
	rules := append([]agent.EgressRule{{Target: allowed[1].Target, Deny: true, Source: "update"}}, allowed...)
	if err := a.Update(agent.Update{Rules: &rules}); err != nil {
		t.Fatal(err)
	}
	if r := <-cut; r.code != 0 || r.err != nil {
		t.Errorf("what is denied now: %+v", r)
	}
	a.shell("touch /tmp/go")
	if r := <-alive; r.code != 0 || r.err != nil {
		t.Errorf("control: what is still allowed: %+v", r)
	}
	again := fmt.Sprintf("exec 3<>/dev/tcp/%s/%d && read line <&3", address, lost)
	if r := a.exec(agent.Exec{Command: []string{"bash", "-c", again}}, ""); r.code == 0 {
		t.Errorf("a new connection: %+v", r)
	}
	a.Stop(0)
	record := a.ends()
	if n := record.Network; n == nil || n.Connections != 2 || n.Refused != 1 {
		t.Errorf("the record counts %+v", n)
	}
	if d := record.Denials; len(d) != 1 || d[0].Count != 1 || !strings.HasSuffix(d[0].Target, fmt.Sprintf(":%d", lost)) || d[0].Rule != allowed[1].Target {
		t.Errorf("the record has the denials %+v", d)
	}
}
