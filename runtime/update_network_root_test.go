//go:build root

package runtime

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// greeter is a server of the host's that says "hello" and then waits.
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
	if address == "" { // the lane's virtual machine has no network
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
		}
	}()
	return address, listener.Addr().(*net.TCPAddr).Port
}

// ownAddress gives the host one of a range for documents, which nobody has.
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
