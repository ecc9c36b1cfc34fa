package ocitest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/testhost"
)

// Addresses behind a Network. The public ones belong to others, but no packet of these
// tests reaches them, because the namespaces have no way out.
const (
	ServerAddress  = "10.77.0.1" // the gateway, with a name server on port 53
	InsideAddress  = "10.77.0.2"
	AllowedAddress = "44.1.1.5" // allowed.test
	OtherAddress   = "44.1.1.6" // other.test
	Allowed6       = "2a44::5"
	Other6         = "2a44::6"
	NamesPort      = 9999
)

// Network is a network as an engine makes it: a namespace for containers with one
// interface, and another namespace with servers behind it. HTTP on ports 80 and 8080
// answers with the server's address. The name server also listens on UDP port NamesPort of
// AllowedAddress and OtherAddress. Port 53 of OtherAddress answers every known name with
// that address, which is wrong.
type Network struct {
	t       testing.TB
	inside  *nsthread.Thread
	outside *nsthread.Thread
	held    *os.File // the containers'
	there   *os.File // the servers'
}

// NewNetwork makes one that is removed with the test.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	return newNetwork(t, unix.CLONE_NEWNET)
}

// JoinNetwork is NewNetwork with the caller's own namespace as that of the containers, so
// that what engines make there reaches the servers through it. The caller's namespace must
// end with the test.
func JoinNetwork(t testing.TB) *Network {
	t.Helper()
	return newNetwork(t, 0)
}

// newNetwork makes the namespaces, the wire between them and the servers. IPv6 addresses
// are added with nodad, or they could not be used for a second.
func newNetwork(t testing.TB, inside int) *Network {
	t.Helper()
	n := &Network{t: t, inside: space(t, inside), outside: space(t, unix.CLONE_NEWNET)}
	n.held, n.there = hold(t, n.inside), hold(t, n.outside)
	n.ip(n.inside, "link add eth0 type veth peer name peer0", "link set lo up", "link set eth0 up",
		"addr add "+InsideAddress+"/24 dev eth0", "addr add fd77::2/64 dev eth0 nodad")
	n.move()
	n.ip(n.outside, "link set lo up", "link set peer0 up", "addr add "+ServerAddress+"/24 dev peer0", "addr add fd77::1/64 dev peer0 nodad",
		"addr add "+AllowedAddress+"/32 dev lo", "addr add "+OtherAddress+"/32 dev lo",
		"addr add "+Allowed6+"/128 dev lo nodad", "addr add "+Other6+"/128 dev lo nodad")
	n.ip(n.inside, "route add default via "+ServerAddress, "-6 route add default via fd77::1")
	check(t, n.outside.Do(n.serve))
	return n
}

// space is a thread in namespaces of its own, which end with the test.
func space(t testing.TB, flags int) *nsthread.Thread {
	t.Helper()
	thread, err := nsthread.Start(flags)
	check(t, err)
	t.Cleanup(thread.Close)
	return thread
}

// hold keeps a thread's namespace open, which gives it a path.
func hold(t testing.TB, thread *nsthread.Thread) (file *os.File) {
	t.Helper()
	check(t, thread.Do(func() (err error) { file, err = os.Open("/proc/thread-self/ns/net"); return err }))
	t.Cleanup(func() { file.Close() })
	return file
}

// move gives the other end of the wire to the servers' namespace.
func (n *Network) move() {
	n.t.Helper()
	n.ip(n.inside, "link set peer0 netns "+n.Outside())
}

// Path names the containers' namespace, for a bundle.
func (n *Network) Path() string { return path(n.held) }

// Outside names the servers' namespace.
func (n *Network) Outside() string { return path(n.there) }

// path names a namespace that has no name, by a descriptor of this process.
func path(held *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), held.Fd()) }

// Do runs f in the containers' namespace, as its engine would.
func (n *Network) Do(f func() error) {
	n.t.Helper()
	check(n.t, n.inside.Do(f))
}

// DoOutside runs f where the servers are.
func (n *Network) DoOutside(f func() error) {
	n.t.Helper()
	check(n.t, n.outside.Do(f))
}

// ip runs commands of ip(8) in the namespace of a thread.
func (n *Network) ip(where *nsthread.Thread, lines ...string) {
	n.t.Helper()
	for _, line := range lines {
		check(n.t, where.Do(func() error {
			out, err := exec.Command(testhost.Tool(n.t, "ip"), strings.Fields(line)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ip %s: %w: %s", line, err, out)
			}
			return nil
		}))
	}
}

// serve runs in the servers' namespace. A socket stays in the namespace in which it was
// made, so the goroutines that serve it may run on any thread.
func (n *Network) serve() error {
	for _, port := range []string{"80", "8080"} {
		listener, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: http.HandlerFunc(whoAmI)}
		n.t.Cleanup(func() { server.Close() })
		go server.Serve(listener)
	}
	truth := answers{"allowed.test.": AllowedAddress, "other.test.": OtherAddress}
	for address, known := range map[string]answers{
		ServerAddress + ":53":                           truth,
		fmt.Sprintf("%s:%d", AllowedAddress, NamesPort): truth,
		fmt.Sprintf("%s:%d", OtherAddress, NamesPort):   truth,
		OtherAddress + ":53":                            {"allowed.test.": OtherAddress, "other.test.": OtherAddress},
	} {
		conn, err := net.ListenPacket("udp", address) // at one address: it answers from there
		if err != nil {
			return err
		}
		server := &dns.Server{PacketConn: conn, Handler: known}
		n.t.Cleanup(func() { conn.Close() })
		go server.ActivateAndServe()
	}
	return nil
}

// whoAmI answers with the address that the caller connected to.
func whoAmI(w http.ResponseWriter, r *http.Request) {
	local := r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
	if at, err := netip.ParseAddrPort(local); err == nil {
		local = at.Addr().Unmap().String()
	}
	io.WriteString(w, "I am "+local+"\n")
}

// answers knows names, each with an IPv4 address.
type answers map[string]string

// ServeDNS answers A. For any other type of a known name the answer is empty.
func (a answers) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	reply := new(dns.Msg).SetReply(question)
	address, known := a[strings.ToLower(question.Question[0].Name)]
	switch {
	case !known:
		reply.Rcode = dns.RcodeNameError
	case question.Question[0].Qtype == dns.TypeA:
		reply.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: question.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.ParseIP(address)}}
	}
	w.WriteMsg(reply)
}
