//go:build root

package netns

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/nftables"
)

// TestTheGateGetsAnswersOfWhomItAsked: the container sends a datagram with the server's address over
// loopback, before the true answer arrives.
func TestTheGateGetsAnswersOfWhomItAsked(t *testing.T) {
	prepare(t)
	w, network := engineWorld(t, true)
	server := netip.MustParseAddrPort("[fd77::1]:53")
	var outside net.PacketConn
	network.DoOutside(func() (err error) { outside, err = net.ListenPacket("udp", server.String()); return err })
	t.Cleanup(func() { outside.Close() })
	heard := func(answers bool) string {
		question, buffer := gateSocket(t, w, server), make([]byte, 100)
		io.WriteString(question, "question")
		outside.SetReadDeadline(time.Now().Add(patience()))
		_, from, err := outside.ReadFrom(buffer)
		if err != nil {
			t.Fatal(err)
		}
		forge(t, network, server.String(), from.String())
		if answers {
			if _, err := outside.WriteTo([]byte("answer"), from); err != nil {
				t.Fatal(err)
			}
		}
		n, err := question.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
	if got := heard(true); got != "answer" {
		t.Errorf("the gate heard %q", got)
	}
	without(t, w.Namespace, "receive")
	if got := heard(false); got != "forged" { // control; the order of two datagrams on two ways is not fixed
		t.Errorf("without the chain it heard %q", got)
	}
}

// without removes one chain from an engine's rules.
func without(t *testing.T, n *Namespace, name string) {
	t.Helper()
	err := n.do(func() error {
		connection, err := nftables.New()
		if err != nil {
			return err
		}
		chain := &nftables.Chain{Name: name, Table: &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}}
		connection.FlushChain(chain)
		connection.DelChain(chain)
		return connection.Flush()
	})
	if err != nil {
		t.Fatal(err)
	}
}
