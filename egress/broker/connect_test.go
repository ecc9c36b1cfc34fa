package broker

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// full is a listener that answers no more SYN: its backlog of one is full.
func full(t *testing.T) (accept func(), at netip.AddrPort) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	if at, err = socketAddress(unix.Getsockname(fd)); err != nil {
		t.Fatal(err)
	}
	first, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { first.Close() })
	return func() {
		conn, _, err := unix.Accept(fd)
		if err != nil {
			t.Error(err)
			return
		}
		unix.Close(conn)
	}, at
}

func TestDialConnects(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Skipf("this machine has no %s: %v", address, err)
		}
		defer listener.Close()
		to := listener.Addr().(*net.TCPAddr).AddrPort()
		file, err := ownNetwork.dial(t.Context(), "tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		peer, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		alive(t, file, peer)
	}
}

// A distant peer answers later: here, when the backlog has space.
func TestDialWaitsForAFarPeer(t *testing.T) {
	t.Parallel()
	accept, at := full(t)
	ended := make(chan error, 1)
	go func() {
		file, err := ownNetwork.dial(t.Context(), "tcp4", at)
		if err == nil {
			err = file.Close()
		}
		ended <- err
	}()
	accept() // TestDialEndsWithItsContext is the control: without it nothing connects
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, at := full(t)
	ctx, cancel := context.WithTimeout(t.Context(), dialStagger)
	defer cancel()
	if _, err := ownNetwork.dial(ctx, "tcp4", at); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ends with %v", err)
	}
	cancel()
	if _, err := ownNetwork.dial(ctx, "tcp4", at); err == nil {
		t.Error("connects after its context ended")
	}
}

func TestDialTellsWhyNot(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().(*net.TCPAddr).AddrPort()
	listener.Close()
	for to, want := range map[netip.AddrPort]error{
		closed: unix.ECONNREFUSED,
		netip.MustParseAddrPort("255.255.255.255:9"): unix.ENETUNREACH, // broadcast, which TCP does not have
	} {
		if _, err := ownNetwork.dial(t.Context(), "tcp4", to); !errors.Is(err, want) {
			t.Errorf("%s: %v, not %v", to, err, want)
		}
	}
}

// TestWhereASocketLeadsIsAsked: a socket with another peer is detected, and one that is
// connected to itself.
func TestWhereASocketLeadsIsAsked(t *testing.T) {
	t.Parallel()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	own, err := socketAddress(unix.Getsockname(fd))
	if err != nil {
		t.Fatal(err)
	}
	_, name := socketName(own)
	if err := unix.Connect(fd, name); err != nil {
		t.Fatalf("cannot make a socket that is connected to itself: %v", err)
	}
	if err := leadsTo(fd, own, own); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("connected to itself: %v", err)
	}
	if err := leadsTo(fd, own, netip.MustParseAddrPort("93.184.216.34:80")); err == nil {
		t.Error("a connection to somewhere else passes")
	}
}

// TestTheOutsideLegIsWhereItsSocketsAre: the caller makes every socket of it.
func TestTheOutsideLegIsWhereItsSocketsAre(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	to := listener.Addr().(*net.TCPAddr).AddrPort()
	var made []int
	b := New(Config{Socket: func(family, kind int) (int, error) {
		made = append(made, kind&^(unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK))
		return unix.Socket(family, kind, 0)
	}})
	file, err := b.dial(t.Context(), "tcp4", to)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	if !b.routed(to.Addr()) || !slices.Equal(made, []int{unix.SOCK_STREAM, unix.SOCK_DGRAM}) {
		t.Errorf("made %v", made)
	}
	failing := func(int, int) (int, error) { return -1, unix.EMFILE }
	if _, err := Dial(t.Context(), failing, "udp4", to); !errors.Is(err, unix.EMFILE) {
		t.Errorf("without a socket: %v", err)
	}
}
