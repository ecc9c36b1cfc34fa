package resolver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"clove.run/clove/egress/dnsmsg"
)

// TestAnotherNetworksServersAreReachedThere: this host's files are not read, because its
// servers and names do not belong to that network.
func TestAnotherNetworksServersAreReachedThere(t *testing.T) {
	t.Parallel()
	server := serve(t, records(t, "a.test. 60 IN A 198.51.100.7"))
	var dialled []string
	there := netip.MustParseAddrPort("192.0.2.53:53")
	r := New(Config{Servers: []netip.AddrPort{there}, Dial: func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
		dialled = append(dialled, network+" "+to.String())
		return dial(ctx, network, server.addr)
	}})
	reply, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA)
	if err != nil || !slices.Equal(addresses(reply), []string{"198.51.100.7"}) || !slices.Equal(dialled, []string{"udp 192.0.2.53:53"}) {
		t.Errorf("%v, %v, dialled %q", reply, err, dialled)
	}
	none := New(Config{NoFiles: true, Dial: func(context.Context, string, netip.AddrPort) (net.Conn, error) {
		t.Error("dialled without a server")
		return nil, net.ErrClosed
	}})
	for _, name := range []string{"localhost", "a.test"} {
		if _, err := none.Lookup(deadline(t), name, dnsmsg.TypeA); !errors.Is(err, ErrNoServers) {
			t.Errorf("%s without servers: %v", name, err)
		}
	}
}

// TestTheHostsFilesAreReadWhoeverDials: the servers are the host's, whichever user owns the
// sockets.
func TestTheHostsFilesAreReadWhoeverDials(t *testing.T) {
	t.Parallel()
	server := serve(t, records(t, "a.test. 60 IN A 198.51.100.7"))
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 192.0.2.53\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var dialled string
	r := New(Config{ResolvConf: conf, Hosts: os.DevNull, Dial: func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
		dialled = to.String()
		return dial(ctx, network, server.addr)
	}})
	reply, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA)
	if err != nil || !slices.Equal(addresses(reply), []string{"198.51.100.7"}) || dialled != "192.0.2.53:53" {
		t.Errorf("%v, %v, dialled %q", reply, err, dialled)
	}
}
