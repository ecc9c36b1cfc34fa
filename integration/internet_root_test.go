//go:build root

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// The addresses in the test network. It belongs to no real host: the two network namespaces
// have no way out.
const (
	siteAddress     = "93.184.216.34" // api.example.com
	siteAddress6    = "2606:2800:220:1::1"
	otherAddress    = "93.184.216.35" // db.example.com: protocols in which the server sends first
	evilAddress     = "151.101.1.69"  // where an agent might want to send data
	evilAddress6    = "2a04:4e42::69"
	lanAddress      = "10.1.2.3"
	lanAddress2     = "192.168.7.7"
	lanAddress6     = "fd12:3456::1"
	cgnatAddress    = "100.64.0.9"
	metadataAddress = "169.254.169.254"
	metadata6       = "fd00:ec2::254"
	nat64Address    = "64:ff9b::a01:203"  // RFC 6052, of lanAddress
	sixToFour       = "2002:a01:203::1"   // RFC 3056, of lanAddress
	teredoAddress   = "2001:0:a01:203::1" // RFC 4380
	resolverAddress = "9.9.9.9"
	linkLocal6      = "fe80::1"
	ownLinkLocal6   = "fe80::2"

	ownAddress       = "172.30.0.2" // the host itself
	ownAddress6      = "2a00:1450:5::2"
	ownPublicAddress = "81.2.69.142"
	gatewayAddress   = "172.30.0.1"
	gatewayAddress6  = "2a00:1450:5::1"

	// Both sides know these addresses, because IPv6 finds no neighbour in the first second of
	// a link.
	hereMAC  = "02:00:00:00:00:02"
	thereMAC = "02:00:00:00:00:01"
)

// internet is a host in a network namespace of its own, in which clove and the controls run,
// and one link to a second namespace with everything else.
type internet struct {
	t        *testing.T
	h        *host
	here     *nsthread.Thread // the host, with an /etc/resolv.conf of its own
	there    *nsthread.Thread // everything else
	resolver string           // the file that here sees as /etc/resolv.conf
	web      *http.ServeMux   // what every web server in the test network serves
	zone     *zone
	closers  []func()
	served   sync.WaitGroup

	mu     sync.Mutex
	visits []string // guarded by mu: "tcp 10.1.2.3:80"
}

// newInternet makes the test network and moves h's commands into the host in it.
func newInternet(t *testing.T, h *host) *internet {
	t.Helper()
	n := &internet{t: t, h: h, web: http.NewServeMux(), zone: newZone()}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("cannot make the test's internet: %s: %v", what, err)
		}
	}
	t.Cleanup(n.close)
	var err error
	n.there, err = nsthread.Start(unix.CLONE_NEWNET)
	must("namespace", err)
	n.here, err = nsthread.Start(unix.CLONE_NEWNET | unix.CLONE_NEWNS)
	must("namespace", err)
	must("cable", n.plug())
	must("resolv.conf", n.ownResolvConf())
	must("servers", n.serve())
	h.inside = n.here.Do
	return n
}

// close removes what was made, in reverse order. Residue of clove is searched for where
// it ran.
func (n *internet) close() {
	if n.h.inside != nil {
		if r := n.h.clove("check"); r.code != 0 {
			n.t.Errorf("clove check finds something left in its own namespace:\n%s%s", r.stdout, r.stderr)
		}
		n.h.inside = nil
	}
	for i := len(n.closers) - 1; i >= 0; i-- {
		n.closers[i]()
	}
	n.served.Wait()
	for _, thread := range []*nsthread.Thread{n.here, n.there} {
		if thread != nil {
			thread.Close()
		}
	}
}

// plug connects the two namespaces and gives each its addresses.
func (n *internet) plug() error {
	var there string
	if err := n.there.Do(func() error {
		there = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		return nil
	}); err != nil {
		return err
	}
	here := `link set lo up
link add up0 type veth peer name down0 netns ` + there + `
addr add ` + ownAddress + `/24 dev up0
addr add ` + ownPublicAddress + `/32 dev up0
addr add ` + ownAddress6 + `/64 dev up0 nodad
link set up0 address ` + hereMAC + ` addrgenmode none
addr add ` + ownLinkLocal6 + `/64 dev up0 nodad
link set up0 up
neigh add ` + gatewayAddress6 + ` lladdr ` + thereMAC + ` dev up0 nud permanent
neigh add ` + linkLocal6 + ` lladdr ` + thereMAC + ` dev up0 nud permanent
route add default via ` + gatewayAddress + `
route add default via ` + gatewayAddress6 + ` dev up0
`
	// Duplicate address detection would keep an address tentative for a second.
	if err := n.here.Do(withoutDetection); err != nil {
		return err
	}
	if err := n.there.Do(withoutDetection); err != nil {
		return err
	}
	// As in distributions: every user may ping.
	if err := n.here.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0)
	}); err != nil {
		return err
	}
	if err := batch(n.here, here); err != nil {
		return err
	}
	return batch(n.there, beyond())
}

// beyond returns the commands that set the addresses in the second namespace.
func beyond() string {
	commands := `addr add ` + gatewayAddress + `/24 dev down0
addr add ` + gatewayAddress6 + `/64 dev down0 nodad
addr add ` + linkLocal6 + `/64 dev down0 nodad
link set lo up
link set down0 address ` + thereMAC + `
link set down0 up
neigh add ` + ownAddress6 + ` lladdr ` + hereMAC + ` dev down0 nud permanent
neigh add ` + ownLinkLocal6 + ` lladdr ` + hereMAC + ` dev down0 nud permanent
`
	for _, address := range []string{siteAddress, siteAddress6, otherAddress, evilAddress, evilAddress6, lanAddress, lanAddress2, lanAddress6,
		cgnatAddress, metadataAddress, metadata6, nat64Address, sixToFour, teredoAddress, resolverAddress} {
		bits := netip.MustParseAddr(address).BitLen()
		commands += fmt.Sprintf("addr add %s/%d dev lo", address, bits)
		if bits == 128 {
			commands += " nodad"
		}
		commands += "\n"
	}
	// The route back to the host's second address.
	commands += "route add " + ownPublicAddress + "/32 via " + ownAddress + "\n"
	return commands
}

// withoutDetection applies to the caller's network namespace.
func withoutDetection() error {
	for _, name := range []string{"all", "default"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/accept_dad", []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
}

// batch runs several commands of ip(8).
func batch(thread *nsthread.Thread, commands string) error {
	var out bytes.Buffer
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(commands), &out, &out
	if err := thread.Do(cmd.Start); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, &out)
	}
	return nil
}

// ownResolvConf hides the machine's resolv.conf from the host of the test.
func (n *internet) ownResolvConf() error {
	const path = "/etc/resolv.conf"
	if _, err := os.Stat(path); err != nil { // a minimal machine has no file to mount on
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
		n.closers = append(n.closers, func() { os.Remove(path) })
	}
	n.resolver = filepath.Join(n.t.TempDir(), "resolv.conf")
	n.resolveWith("nameserver " + resolverAddress + "\n")
	return n.here.Do(func() error { return unix.Mount(n.resolver, path, "", unix.MS_BIND, "") })
}

// resolveWith changes the host's resolv.conf.
func (n *internet) resolveWith(text string) {
	n.t.Helper()
	if err := os.WriteFile(n.resolver, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// outside runs a program on the host without a sandbox, for controls.
func (n *internet) outside(args ...string) (stdout string, err error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// As in a sandbox: none of the settings of this machine's user.
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LANG=C.UTF-8"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := n.here.Do(cmd.Start); err != nil {
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return out.String(), fmt.Errorf("%v: %w\n%s", args, err, &errs)
	}
	return out.String(), nil
}

// visit is called by every server of the test network.
func (n *internet) visit(network, local string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.visits = append(n.visits, network+" "+local)
}

// visited reports whether a connection reached a server: "tcp 10.1.2.3:80".
func (n *internet) visited(server string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range n.visits {
		if v == server {
			return true
		}
	}
	return false
}
