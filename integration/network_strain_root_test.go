//go:build root

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"clove.run/clove/internal/testhost"
)

// TestOneAgentsCrowdIsItsOwn: an agent that holds as many connections as it can get, and half
// requests as well, does not delay another agent. Its record shows that it reached its own
// limit.
func TestOneAgentsCrowdIsItsOwn(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	attempts, limit := testhost.Sample(10_000, 10_000, 500), testhost.Sample(1000, 1000, 100)
	for _, row := range []struct {
		name string
		args []string
	}{
		{"idle", []string{"idle", otherAddress + ":22", fmt.Sprint(attempts)}},
		{"half a request", []string{"idle", "api.example.com:80", fmt.Sprint(limit), "GET / HTTP/1.1\r\nHost: "}},
		{"questions", []string{"ask", fmt.Sprint(attempts), "flood.example.com"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			crowd := h.start(self("--allow=db.example.com:22", "--allow=api.example.com", "--allow="+otherAddress+":22", "--allow=*.flood.example.com",
				fmt.Sprintf("--net-connections=%d", limit), "--net-rate=60000", "--ulimit=nofile=12000", "--name=crowd"),
				append([]string{agentInside, agentWord}, row.args...)...)
			line := crowd.line()
			var served, refused int
			if _, err := fmt.Sscanf(line, "served %d refused %d", &served, &refused); err != nil || served > limit {
				t.Errorf("%s\n%s", line, &crowd.stderr)
			}
			other := h.start(self("--allow=api.example.com"), agentInside, agentWord, "steps")
			var took []time.Duration
			for range 21 {
				asked := time.Now()
				fmt.Fprintln(other.stdin, "http://api.example.com/")
				if line := other.line(); !strings.Contains(line, reached) {
					t.Errorf("%s\n%s", line, &other.stderr)
				}
				took = append(took, time.Since(asked))
			}
			slices.Sort(took)
			// The median: on a busy machine one request may wait, but if the crowd is in the
			// way all of them do.
			usual := took[len(took)/2]
			other.wait()
			end := crowd.wait()
			t.Logf("%s; meanwhile a request of another took %v, the slowest %v; refused %+v", line, usual, took[len(took)-1], end.record.Network)
			if use := end.record.Network; use == nil || use.ConnectionsPeak > int64(limit) || row.name == "idle" && use.ConnectionsPeak < int64(limit) {
				t.Errorf("record: %+v", use)
			}
			// Far above the usual few milliseconds.
			if usual > testhost.Patience(time.Second) {
				t.Errorf("a request of the other agent took %v", usual)
			}
		})
	}
}

// TestFewDescriptors: clove and its gate have almost none to spare. Connections beyond that
// are refused, the others work, and none bypasses the gate.
func TestFewDescriptors(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	c := n.capture(t)
	file := filepath.Join(t.TempDir(), "record.json")
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	cmd := h.command(ctx, append(append([]string{"run", "--rm", "--result", file}, self("--allow="+otherAddress+":22", "--ulimit=nofile=400")...),
		"--", agentInside, agentWord, "idle", otherAddress+":22", "300")...)
	clove := cmd.Path
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 512; exec "$0" "$@"`, clove}, cmd.Args[1:]...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := h.begin(cmd)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	var served, refused int
	if _, err := fmt.Sscanf(out.String(), "served %d refused %d", &served, &refused); err != nil || served == 0 || refused == 0 {
		t.Errorf("%q\n%s", &out, &errs)
	}
	t.Logf("with 512 descriptors: %s", &out)
	c.onlyTo("tcp " + otherAddress + ":22")
	record := readRecord(t, file)
	n.gateLived(t, result{record: record, stderr: errs.String()})
}

// TestAHostFirewallIsNoHindrance: clove does not change it. Like many firewalls, this one
// accepts only packets of the host's own connections.
func TestAHostFirewallIsNoHindrance(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	var before, after []*nftables.Table
	list := func(into *[]*nftables.Table) error {
		return n.here.Do(func() (err error) { *into, err = (&nftables.Conn{}).ListTables(); return err })
	}
	if err := errors.Join(n.here.Do(closeInward), list(&before)); err != nil {
		t.Fatal(err)
	}
	if said, err := n.call(n.there, netip.MustParseAddrPort(ownAddress+":7").String()); err == nil {
		t.Fatalf("control: the firewall lets in what it should not: %q", said)
	}
	r := n.passes(t, []string{"--allow=api.example.com", "--allow=udp://" + siteAddress + ":7", "--host-port=5432"}, []attempt{
		{Name: "web", URL: siteURL}, {Name: "udp", Address: siteAddress + ":7", UDP: true, Parts: [][]byte{[]byte("hello")}},
		{Name: "host", Address: "127.0.0.1:5432", Parts: [][]byte{[]byte("GET / HTTP/1.0\r\n\r\n")}},
	})
	if err := list(&after); err != nil || len(after) != len(before) || len(before) != 1 {
		t.Errorf("tables: %d, then %d, %v\n%s", len(before), len(after), err, r.stderr)
	}
}

// closeInward is `ct state established,related accept; iif lo accept; policy drop`.
func closeInward() error {
	c := &nftables.Conn{}
	table := c.AddTable(&nftables.Table{Name: "firewall", Family: nftables.TableFamilyINet})
	drop := nftables.ChainPolicyDrop
	chain := c.AddChain(&nftables.Chain{Name: "input", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter, Policy: &drop})
	accept := &expr.Verdict{Kind: expr.VerdictAccept}
	known := []byte{byte(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED), 0, 0, 0} // in the machine's own byte order
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: known, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}, accept}})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: append([]byte("lo"), make([]byte, 14)...)}, accept}})
	return c.Flush()
}
