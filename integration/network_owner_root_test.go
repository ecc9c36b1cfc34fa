//go:build root

package integration

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// goesOut tries a name, a connection and a datagram, and prints what worked.
const goesOut = `
import socket, sys
patience = float(sys.argv[1]) # with what never answers
def tries(name, make):
    try:
        print(name, "yes" if make() else "no")
    except OSError:
        print(name, "no")
def web():
    with socket.create_connection(("` + siteAddress + `", 80), patience) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return b" 200 " in s.recv(100)
def echo():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(patience)
        s.connect(("` + siteAddress + `", 7))
        s.send(b"hello")
        return s.recv(100)
tries("name", lambda: socket.getaddrinfo("api.example.com", 80, socket.AF_INET))
tries("tcp", web)
tries("udp", echo)
`

const (
	allOut  = "name yes\ntcp yes\nudp yes\n"
	noneOut = "name no\ntcp no\nudp no\n"
)

func answerTime() string { return fmt.Sprint(testhost.Patience(4 * time.Second).Seconds()) }

// newClovedWithInternet is a cloved for the test's group on the host of a test network.
func newClovedWithInternet(t *testing.T) (*cloved, *internet) {
	t.Helper()
	d := newClovedFor(t, groupName)
	d.stop(unix.SIGTERM)
	n := newInternet(t, d.host)
	d.serve()
	return d, n
}

// goesOutAs runs goesOut in an agent of a user and returns its output.
func (d *cloved) goesOutAs(uid uint32, name string) string {
	d.t.Helper()
	as := func(args ...string) string {
		d.t.Helper()
		r := d.as(uid, []uint32{groupID}, args...)
		if r.code != 0 {
			d.t.Fatalf("clove %s as %d: %d, %s", strings.Join(args, " "), uid, r.code, r.stderr)
		}
		return r.stdout
	}
	as("run", "-d", "--name", name, "--allow=api.example.com", "--allow="+siteAddress, "--allow=udp://"+siteAddress+":7", "--", python, "-c", goesOut, answerTime())
	as("wait", name)
	said := as("logs", name)
	as("rm", name)
	return said
}

// TestAFirewallsRuleByUserHoldsForTheUsersAgents: whichever program wrote the rule, a target
// that is blocked for a user is blocked for that user's agents. The controls: the same agent
// without the rule, the user without an agent, and agents of other users.
func TestAFirewallsRuleByUserHoldsForTheUsersAgents(t *testing.T) {
	d, n := newClovedWithInternet(t)
	for _, firewall := range firewalls {
		t.Run(firewall.name, func(t *testing.T) {
			if said := d.goesOutAs(memberUID, "before"); said != allOut {
				t.Fatalf("control: without a rule a member's agent reaches\n%s", said)
			}
			firewall.refuse(t, n, memberUID)
			if said, err := n.outside("setpriv", fmt.Sprintf("--reuid=%d", memberUID), "--clear-groups", python, "-c", goesOut, answerTime()); err != nil || said != noneOut {
				t.Fatalf("control: the rule does not hold for the user: %v\n%s", err, said)
			}
			for name, uid := range map[string]uint32{"root": 0, "another": otherUID} {
				if said := d.goesOutAs(uid, name); said != allOut {
					t.Errorf("control: the agent of %s reaches only\n%s", name, said)
				}
			}
			n.zone.forget()
			c := n.capture(t)
			if said := d.goesOutAs(memberUID, "after"); said != noneOut {
				t.Errorf("the member's agent reaches\n%s", said)
			}
			c.onlyTo()
			if asked := n.zone.questions(); len(asked) != 0 {
				t.Errorf("for the member's agent was asked %q", asked)
			}
		})
	}
}

// TestAFirewallsRuleByUserHoldsForPublishedPorts: the sockets on the host belong to the user
// as well. The control is root's agent.
func TestAFirewallsRuleByUserHoldsForPublishedPorts(t *testing.T) {
	d, n := newClovedWithInternet(t)
	const address = ownAddress + ":9003"
	reaches := func(uid uint32, name string) bool {
		t.Helper()
		r := d.as(uid, []uint32{groupID}, "run", "-d", "--name", name, "-p", address+":8080", "--", python, "-c", `
import socket
s = socket.create_server(("127.0.0.1", 8080))
print("up", flush=True)
while True:
    c, _ = s.accept()
    c.recv(100)
    c.sendall(b"inside")
    c.close()
`)
		if r.code != 0 {
			t.Fatalf("a published port as %d: %s", uid, r.stderr)
		}
		defer d.ok("rm", "-f", ownersName(uid, name))
		if line := d.follow("logs", "-f", ownersName(uid, name)).line(); line != "up" {
			t.Fatalf("%q", line)
		}
		said, err := n.call(n.there, address)
		return err == nil && strings.Contains(said, "inside")
	}
	if !reaches(memberUID, "before") {
		t.Fatal("control: without a rule a member's port cannot be reached")
	}
	nft(t, n, memberUID)
	if !reaches(0, "roots") {
		t.Error("control: root's port cannot be reached")
	}
	if reaches(memberUID, "after") {
		t.Error("a port of the member's answers in spite of the rule")
	}
}

// TestMetadataAndTheHostAreForRootsAgents: users.allow is enforced at the socket. The control
// is root, whom the same cloved allows both.
func TestMetadataAndTheHostAreForRootsAgents(t *testing.T) {
	d, _ := newClovedWithInternet(t)
	d.settings = "users:\n  allow: [public, private]\n"
	d.stop(unix.SIGTERM)
	d.serve()
	reaches := func(uid uint32, target, address string) (refused, said string) {
		t.Helper()
		r := d.as(uid, []uint32{groupID}, "run", "-d", "--name", "one", "--allow="+target, "--", python, "-c",
			`import urllib.request; print(urllib.request.urlopen("http://`+address+`/", timeout=`+answerTime()+`).status)`)
		if r.code != 0 {
			return r.stderr, ""
		}
		one := ownersName(uid, "one")
		d.ok("wait", one)
		defer d.ok("rm", one)
		return "", d.ok("logs", one)
	}
	for target, address := range map[string]string{"metadata": metadataAddress, metadataAddress: metadataAddress, "host": ownAddress, ownAddress: ownAddress} {
		if refused, said := reaches(0, target, address); said != "200\n" {
			t.Errorf("control: root's agent, %s: %s%s", target, refused, said)
		}
		if refused, said := reaches(memberUID, target, address); !strings.Contains(refused, "ask root") {
			t.Errorf("a member's agent, %s: %q %s", target, refused, said)
		}
	}
	if refused, said := reaches(memberUID, lanAddress, lanAddress); said != "200\n" {
		t.Errorf("control: a member's agent within users.allow: %s%s", refused, said)
	}
	if refused, _ := reaches(memberUID, "udp://public:*", lanAddress); !strings.Contains(refused, "users.allow") {
		t.Errorf("beyond users.allow: %q", refused)
	}
}

// firewalls are programs that write a rule by user on the host of a test network. The rule is
// removed after the test.
var firewalls = []struct {
	name   string
	refuse func(t *testing.T, n *internet, uid uint32)
}{{"nft", nft}, {"iptables-nft", iptables("nft")}, {"iptables-legacy", iptables("legacy")}}

// iptables is the program itself, in one of its two variants.
func iptables(kind string) func(*testing.T, *internet, uint32) {
	return func(t *testing.T, n *internet, uid uint32) {
		t.Helper()
		for _, program := range []string{"iptables-" + kind, "ip6tables-" + kind} {
			do := func(verb string) {
				t.Helper()
				if said, err := n.outside(program, verb, "OUTPUT", "-m", "owner", "--uid-owner", fmt.Sprint(uid), "-j", "REJECT"); err != nil {
					t.Fatalf("%s: %v\n%s", program, err, said)
				}
			}
			do("-A")
			t.Cleanup(func() { do("-D") })
		}
	}
}

// nft writes the same rule with nft(8).
func nft(t *testing.T, n *internet, uid uint32) {
	t.Helper()
	var c *nftables.Conn
	table := &nftables.Table{Name: "users", Family: nftables.TableFamilyINet}
	err := n.here.Do(func() (err error) {
		if c, err = nftables.New(nftables.AsLasting()); err != nil {
			return err
		}
		chain := c.AddChain(&nftables.Chain{Name: "output", Table: c.AddTable(table), Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.NativeEndian.AppendUint32(nil, uid)},
			&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}}})
		return c.Flush()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.DelTable(table)
		if err := errors.Join(c.Flush(), c.CloseLasting()); err != nil {
			t.Error(err)
		}
	})
}
