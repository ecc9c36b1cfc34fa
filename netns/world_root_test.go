//go:build root

package netns

import (
	"context"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// patience bounds each wait for an event that must come.
func patience() time.Duration { return testhost.Patience(10 * time.Second) }

// prepare begins a root test.
func prepare(t *testing.T) {
	t.Helper()
	testhost.Root(t)
	testhost.NoResidue(t)
}

func made(t *testing.T, p Plan) *Namespace {
	t.Helper()
	n, err := p.Make()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// unruled is a namespace whose addresses are all local and which has no nft rules: the control
// for each rule.
func unruled(t *testing.T) *Namespace {
	t.Helper()
	n := made(t, NewPlan(Config{}))
	p := NewPlan(Config{Everything: true})
	if err := n.do(func() error { return addRoutes(p.routes()) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// world is a planned namespace with its sockets, as the gate gets them.
type world struct {
	*Namespace
	sockets []Socket
}

func listening(t *testing.T, p Plan) *world {
	t.Helper()
	w := &world{Namespace: made(t, p)}
	w.listen(t)
	return w
}

func (w *world) listen(t *testing.T) {
	t.Helper()
	sockets, err := w.Listen()
	if err != nil {
		t.Fatal(err)
	}
	w.sockets = sockets
	t.Cleanup(w.hangUp)
}

// hangUp plays the end of the gate.
func (w *world) hangUp() {
	for _, s := range w.sockets {
		s.File.Close()
	}
	w.sockets = nil
}

// at finds the socket that is bound to address.
func (w *world) at(t *testing.T, kind, address string) *os.File {
	t.Helper()
	for _, s := range w.sockets {
		if s.Kind == kind && bound(t, s.File) == netip.MustParseAddrPort(address) {
			return s.File
		}
	}
	t.Fatalf("no %s socket at %s", kind, address)
	return nil
}

func bound(t *testing.T, file *os.File) netip.AddrPort {
	t.Helper()
	var name unix.Sockaddr
	err := control(file, func(fd int) (err error) { name, err = unix.Getsockname(fd); return err })
	if err != nil {
		t.Fatal(err)
	}
	return addrPort(name)
}

func addrPort(name unix.Sockaddr) netip.AddrPort {
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port))
	}
	return netip.AddrPort{}
}

func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = f(int(fd)) }); err != nil {
		return err
	}
	return result
}

// connect is an agent's connect(2) to anywhere.
func connect(t *testing.T, n *Namespace, to string) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	file, err := n.dial(ctx, netip.MustParseAddrPort(to))
	if err != nil {
		return nil, err
	}
	return conn(t, file), nil
}

func conn(t *testing.T, file *os.File) net.Conn {
	t.Helper()
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience())); err != nil {
		t.Fatal(err)
	}
	return c
}

// datagrams is a UDP socket of the agent, bound to from and connected to "to" if these are not
// empty.
func datagrams(t *testing.T, n *Namespace, from, to string) (file *os.File, err error) {
	t.Helper()
	family := netip.MustParseAddrPort(from + to)
	if from != "" && to != "" {
		t.Fatal("one of from and to is enough")
	}
	err = n.do(func() (err error) {
		file, err = open(unix.SOCK_DGRAM, family, "agent", func(fd int) error {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
				return err
			}
			if from != "" {
				return unix.Bind(fd, sockaddr(family))
			}
			return unix.Connect(fd, sockaddr(family))
		})
		return err
	})
	if err == nil {
		t.Cleanup(func() { file.Close() })
		err = file.SetDeadline(time.Now().Add(patience()))
	}
	return file, err
}

// received is one datagram that a gate's socket got.
type received struct {
	text         string
	from, target netip.AddrPort
}

func receive(t *testing.T, file *os.File) received {
	t.Helper()
	if err := file.SetReadDeadline(time.Now().Add(patience())); err != nil {
		t.Fatal(err)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	buffer, oob := make([]byte, 1<<16), make([]byte, 256)
	var n, oobLength int
	var from unix.Sockaddr
	var result error
	err = raw.Read(func(fd uintptr) bool {
		n, oobLength, _, from, result = unix.Recvmsg(int(fd), buffer, oob, 0)
		return result != unix.EAGAIN
	})
	if err != nil || result != nil {
		t.Fatalf("nothing received: %v, %v", err, result)
	}
	r := received{text: string(buffer[:n]), from: addrPort(from)}
	messages, err := unix.ParseSocketControlMessage(oob[:oobLength])
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if name, err := unix.ParseOrigDstAddr(&m); err == nil {
			r.target = addrPort(name)
		}
	}
	return r
}
