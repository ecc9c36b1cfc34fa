//go:build root

package oci

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/oci"
)

// fetch sends a request to a web server at its address; a static busybox has no wget.
func fetch(address, port, host string) string {
	return "printf 'GET / HTTP/1.0\\r\\nHost: " + host + "\\r\\n\\r\\n' | nc -w 20 " + address + " " + port + " | grep -o 'I am .*'"
}

// lookup queries a name at the container's name server or at another.
func lookup(name, server, want string) string {
	return "nslookup -type=a " + name + " " + server + " | grep -o '" + want + "$'"
}

// fetchName is what a program does with a name.
func fetchName(name, want string) string {
	return "a=$(" + lookup(name, "", want) + ") && " + fetch("$a", "80", name)
}

// listens waits for a listener on port 7777. A connection to an earlier one stays in the
// network's table for a minute.
const listens = "grep -q ':1E61 0*:0000 0A ' /proc/net/tcp*"

// pingSeconds is how long an answer is waited for; the rules drop the request silently.
var pingSeconds = strconv.Itoa(int(testhost.Patience(3 * time.Second).Seconds()))

// attempts are what a container tries, and the result without rules. The listener does not
// read: nc would end without output if the other end closed first.
var attempts = []struct{ name, command, free string }{
	{"allowed", fetch(ocitest.AllowedAddress, "80", "a"), "I am " + ocitest.AllowedAddress},
	{"other", fetch(ocitest.OtherAddress, "80", "a"), "I am " + ocitest.OtherAddress},
	{"private", fetch(ocitest.ServerAddress, "80", "a"), "I am " + ocitest.ServerAddress},
	{"port", fetch(ocitest.AllowedAddress, "8080", "a"), "I am " + ocitest.AllowedAddress},
	{"allowed6", fetch(ocitest.Allowed6, "80", "a"), "I am " + ocitest.Allowed6},
	{"other6", fetch(ocitest.Other6, "80", "a"), "I am " + ocitest.Other6},
	{"name", fetchName("allowed.test", ocitest.AllowedAddress), "I am " + ocitest.AllowedAddress},
	{"othername", fetchName("other.test", ocitest.OtherAddress), "I am " + ocitest.OtherAddress},
	{"udp", lookup("allowed.test", ocitest.AllowedAddress+":9999", ocitest.AllowedAddress), ocitest.AllowedAddress},
	{"otherudp", lookup("allowed.test", ocitest.OtherAddress+":9999", ocitest.AllowedAddress), ocitest.AllowedAddress},
	{"resolver", lookup("other.test", ocitest.ServerAddress, ocitest.OtherAddress), ocitest.OtherAddress},
	{"ping", "ping -c 1 -w " + pingSeconds + " " + ocitest.AllowedAddress + " | grep -o '1 packets received'", "1 packets received"},
	{"self", "nc -l -p 7777 -e echo mine >/dev/null & until " + listens + "; do :; done; nc -w 20 " + ocitest.InsideAddress + " 7777 </dev/null", "mine"},
}

// script makes all attempts at the same time, because silent refusals take long.
func script() string {
	var b strings.Builder
	for _, a := range attempts {
		b.WriteString(strings.TrimSuffix(tell(a.name, a.command), "\n") + " &\n")
	}
	return b.String() + "wait\n"
}

// TestNetworkRulesHold makes the same attempts in each mode, and without rules.
func TestNetworkRulesHold(t *testing.T) {
	n := newNode(t)
	n.serve()
	raw := func(s *specs.Spec) { // Docker's default, and with --cap-add NET_ADMIN
		for _, set := range []*[]string{&s.Process.Capabilities.Bounding, &s.Process.Capabilities.Effective, &s.Process.Capabilities.Permitted} {
			*set = append(*set, "CAP_NET_RAW", "CAP_NET_ADMIN")
		}
	}
	for name, row := range map[string]struct {
		annotations []string
		passes      string // names of attempts
	}{
		"without rules":   {nil, "allowed other private port allowed6 other6 name othername udp otherudp resolver ping self"},
		"by address":      {allowing(ocitest.AllowedAddress + ",[" + ocitest.Allowed6 + "]"), "allowed allowed6 self"},
		"by name":         {allowing("allowed.test"), "name self"},
		"datagrams":       {allowing("udp://" + ocitest.AllowedAddress + ":9999"), "udp self"},
		"a private one":   {allowing(ocitest.ServerAddress), "private self"},
		"nothing":         {[]string{oci.AnnotationNetworkMode, agent.NetworkAllowlist}, "self"},
		"none":            {[]string{oci.AnnotationNetworkMode, agent.NetworkNone}, "self"},
		"public":          {[]string{oci.AnnotationNetworkMode, agent.NetworkPublic}, "allowed other port allowed6 other6 name othername resolver self"},
		"public, but one": {[]string{oci.AnnotationNetworkMode, agent.NetworkPublic, oci.AnnotationNetworkDeny, "other.test," + ocitest.OtherAddress}, "allowed port allowed6 other6 name self"},
		"a neighbour's":   {allowing(ocitest.OtherAddress), "other self"},
	} {
		t.Run(name, func(t *testing.T) {
			got := n.Do("run", "--bundle", n.bundle(ocitest.ServerAddress, script(), n.in(row.annotations...), raw), "one")
			if got.Status != 0 {
				t.Fatalf("%+v", got)
			}
			said := answers(got.Out)
			for _, a := range attempts {
				want := ""
				if strings.Contains(" "+row.passes+" ", " "+a.name+" ") {
					want = a.free
				}
				if said[a.name] != want {
					t.Errorf("%s: %q, want %q", a.name, said[a.name], want)
				}
			}
			if n.ruled() {
				t.Error("the rules are left")
			}
		})
	}
}

// guarded is a container with rules. For each line that it reads, it fetches from the address.
func guarded(t *testing.T, n *node, id string, annotations ...string) (fetches func(address string) string) {
	t.Helper()
	n.Must("create", "--bundle", n.bundle(ocitest.ServerAddress, "exec sleep 1000", n.in(annotations...)), id)
	t.Cleanup(func() { n.Do("delete", "--force", id) })
	n.Must("start", id)
	return fetcher(t, n, id)
}

// fetcher fetches from an address in a running container; "" means refused.
func fetcher(t *testing.T, n *node, id string) (fetches func(address string) string) {
	return func(address string) string {
		t.Helper()
		got := n.Do("exec", id, "sh", "-c", fetch(address, "80", "a")+" 2>/dev/null; echo tried")
		said, tried := strings.CutSuffix(got.Out, "tried")
		if got.Status != 0 || !tried {
			t.Fatalf("nothing was fetched: %+v", got)
		}
		return strings.TrimSpace(said)
	}
}

const allowedSays = "I am " + ocitest.AllowedAddress

// TestRulesOutliveCloved: a container without its guard has no network.
func TestRulesOutliveCloved(t *testing.T) {
	n := newNode(t)
	n.serve()
	fetches := guarded(t, n, "one", allowing(ocitest.AllowedAddress)...)
	if got := fetches(ocitest.AllowedAddress); got != allowedSays {
		t.Fatalf("%q", got)
	}
	n.killCloved()
	if got := fetches(ocitest.AllowedAddress); got != allowedSays {
		t.Errorf("without cloved: %q", got)
	}
	if got := fetches(ocitest.OtherAddress); got != "" {
		t.Errorf("without cloved, another: %q", got)
	}
	guard := n.guard("one")
	if err := unix.Kill(guard.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	n.Await("the gate's end", func() bool { return fetches(ocitest.AllowedAddress) == "" })
	if got := fetches(ocitest.OtherAddress); got != "" {
		t.Errorf("without its guard, another: %q", got)
	}
	n.Must("delete", "--force", "one")
	if n.ruled() {
		t.Error("the rules are left")
	}
	// Control: the namespace is as before.
	got := n.Do("run", "--bundle", n.bundle(ocitest.ServerAddress, fetch(ocitest.OtherAddress, "80", "a"), n.in()), "two")
	if got.Out != "I am "+ocitest.OtherAddress {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestDeleteEndsTheGuard: whether it is alive or not; the container's end does so too.
func TestDeleteEndsTheGuard(t *testing.T) {
	n := newNode(t)
	n.serve()
	guarded(t, n, "one", allowing(ocitest.AllowedAddress)...)
	guard := n.guard("one").PID
	lives := func() bool { return runs(guard) } // cloved may reap it later
	if !lives() {
		t.Fatal("no guard")
	}
	n.Must("kill", "one", "KILL")
	n.Await("the guard's end", func() bool { return !lives() })
	if !n.ruled() {
		t.Error("the rules ended before the container was deleted")
	}
	n.Must("delete", "one")
	if n.ruled() {
		t.Error("the rules are left")
	}
	guarded(t, n, "two", allowing(ocitest.AllowedAddress)...)
	guard = n.guard("two").PID
	n.Must("delete", "--force", "two")
	if lives() || n.ruled() {
		t.Errorf("after a removal by force: guard %v, rules %v", lives(), n.ruled())
	}
}

// TestAGateThatDiesIsTheNetworksEnd: its guard logs the end.
func TestAGateThatDiesIsTheNetworksEnd(t *testing.T) {
	n := newNode(t)
	n.serve()
	fetches := guarded(t, n, "one", allowing(ocitest.AllowedAddress)...)
	if got := fetches(ocitest.AllowedAddress); got != allowedSays {
		t.Fatalf("%q", got)
	}
	guard := strconv.Itoa(n.guard("one").PID)
	threads, err := filepath.Glob("/proc/" + guard + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var gate int
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if pid, none := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && none == nil {
			gate = pid
		}
	}
	if gate == 0 {
		t.Fatal("the guard has no gate")
	}
	if err := unix.Kill(gate, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	n.Await("the network's end", func() bool { return fetches(ocitest.AllowedAddress) == "" })
	n.Await("the guard's last words", func() bool {
		text, _ := os.ReadFile(filepath.Join(n.Root, "one", agent.GuardLogFile))
		return strings.Contains(string(text), "the gate is lost")
	})
	if got := fetches(ocitest.OtherAddress); got != "" {
		t.Errorf("another: %q", got)
	}
}

// TestRefusedTargetsAreSaid: once each, in the container's directory.
func TestRefusedTargetsAreSaid(t *testing.T) {
	n := newNode(t)
	n.serve()
	fetches := guarded(t, n, "one", allowing(ocitest.AllowedAddress)...)
	fetches(ocitest.OtherAddress)
	fetches(ocitest.OtherAddress)
	text, err := os.ReadFile(filepath.Join(n.Root, "one", agent.GuardLogFile))
	if err != nil || strings.Count(string(text), "tcp://"+ocitest.OtherAddress+":80") != 1 {
		t.Errorf("%s, %v", text, err)
	}
}

// TestNetworkRulesAreRefused: if they would not be enforced, nothing executes.
func TestNetworkRulesAreRefused(t *testing.T) {
	n := newNode(t)
	some := allowing(ocitest.AllowedAddress)
	refuse := func(name, want string, edits ...func(*specs.Spec)) {
		t.Helper()
		got := n.Do("run", "--bundle", n.bundle(ocitest.ServerAddress, "echo executed", edits...), "refused")
		if got.Status != 1 || !strings.Contains(got.Err, want) || strings.Contains(got.Out, "executed") {
			t.Errorf("%s: %+v, want %q", name, got, want)
		}
		if n.ruled() {
			t.Errorf("%s: rules are left", name)
		}
	}
	refuse("without cloved", "cloved, which does not run", n.in(some...))
	n.serve()
	refuse("the host's network", "in the host's network", n.in(some...), func(s *specs.Spec) {
		var others []specs.LinuxNamespace
		for _, namespace := range s.Linux.Namespaces {
			if namespace.Type != specs.NetworkNamespace {
				others = append(others, namespace)
			}
		}
		s.Linux.Namespaces = others
	})
	refuse("the host's network by path", "its own", n.in(some...), func(s *specs.Spec) {
		for i := range s.Linux.Namespaces {
			if s.Linux.Namespaces[i].Type == specs.NetworkNamespace {
				s.Linux.Namespaces[i].Path = "/proc/" + strconv.Itoa(os.Getpid()) + "/ns/net"
			}
		}
	})
	refuse("the host's processes", "the host's pid namespace", n.in(some...), func(s *specs.Spec) {
		s.Linux.Namespaces = slices.DeleteFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.PIDNamespace })
	})
	refuse("privileged", "CAP_SYS_ADMIN", n.in(some...), func(s *specs.Spec) {
		s.Process.Capabilities.Bounding = append(s.Process.Capabilities.Bounding, "CAP_SYS_ADMIN")
	})
	refuse("a pod's member without its sandbox", "no network rules are in force in the pod's network", n.in(append(some, podRole, "container", podSandbox, "sandbox")...))
	guarded(t, n, "first", some...)
	for name, second := range map[string][]string{"a second one": some, "a second one that calls itself a member": append(some, podRole, "container")} {
		got := n.Do("run", "--bundle", n.bundle(ocitest.ServerAddress, "echo executed", n.in(second...)), "refused")
		if got.Status != 1 || !strings.Contains(got.Err, "rules of clove's hold there already") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if !n.ruled() {
		t.Error("the first one's rules are gone")
	}
}

// TestWhatBeganOutsideGoesOn: with a gate; published ports and probes are controlled by the
// engine. In mode none there are neither.
func TestWhatBeganOutsideGoesOn(t *testing.T) {
	n := newNode(t)
	n.serve()
	for mode, want := range map[string]string{agent.NetworkAllowlist: "served", agent.NetworkPublic: "served", agent.NetworkNone: "", "": "served"} {
		annotations := []string{oci.AnnotationNetworkMode, mode}
		if mode == "" { // control
			annotations = nil
		}
		n.Must("run", "--detach", "--bundle", n.bundle(ocitest.ServerAddress, "echo served | nc -l -p 7777 >/dev/null", n.in(annotations...)), "one")
		n.Await("its server", func() bool { return n.Do("exec", "one", "sh", "-c", listens).Status == 0 })
		wait := testhost.Patience(20 * time.Second)
		if want == "" {
			wait = time.Second // no answer will come
		}
		if got := visit(t, n, ocitest.InsideAddress+":7777", wait); got != want {
			t.Errorf("mode %q: %q, want %q", mode, got, want)
		}
		n.Must("delete", "--force", "one")
	}
}

// visit reads what a server in the container sends to a client outside.
func visit(t *testing.T, n *node, address string, wait time.Duration) string {
	t.Helper()
	var said []byte
	n.network.DoOutside(func() error {
		conn, err := net.DialTimeout("tcp", address, wait)
		if err != nil {
			return nil // the answer is complete
		}
		defer conn.Close()
		said, _ = io.ReadAll(conn)
		return nil
	})
	return strings.TrimSpace(string(said))
}
