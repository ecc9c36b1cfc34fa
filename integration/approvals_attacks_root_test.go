//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
)

// askingHost is a cloved on a host of a test network, and that network.
func askingHost(t *testing.T) (*cloved, *internet) {
	t.Helper()
	d := newCloved(t)
	d.stop(unix.SIGTERM)
	n := newInternet(t, d.host)
	d.serve()
	return d, n
}

// questions are all that were asked.
func (d *cloved) questions(t *testing.T) (all []api.Approval) {
	t.Helper()
	if err := json.Unmarshal([]byte(d.ok("approvals", "list", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// A held connection ends with its supervisor. The next run is asked about anew, and what was asked for the dead one cannot be answered.
func TestAHeldConnectionEndsWithItsSupervisor(t *testing.T) {
	d, n := askingHost(t)
	d.detach("held", "exec curl -sS -m 60 http://api.example.com/", "--network", "allowlist", "--ask", "net")
	asked := d.question(t)
	killSupervisor(t, d, "held")
	d.clove("wait", "held")
	if r := d.clove("approvals", "allow", asked.ID); r.code == 0 {
		t.Errorf("the question of a dead run is answered: %s", r.stdout)
	}
	if n.visited("tcp " + siteAddress + ":80") {
		t.Error("it was connected")
	}
	d.detach("again", "exec curl -sS -m 60 http://api.example.com/", "--network", "allowlist", "--ask", "net")
	if again := d.question(t); again.ID == asked.ID || again.Agent != "again" {
		t.Errorf("%+v", again)
	}
}

// What a rule denies, the metadata service and the host's own addresses are refused without a question. The control is the same
// target without the deny rule, and a public address: they are asked about.
func TestWhatIsForbiddenIsNotAsked(t *testing.T) {
	d, n := askingHost(t)
	flags := []string{"--network", "allowlist", "--ask", "net"}
	get := func(target string) string { return fmt.Sprintf("curl -sS -m 10 http://%s/; true", target) }
	for _, target := range []string{metadataAddress, "[" + metadata6 + "]", ownAddress, ownPublicAddress, "[" + ownAddress6 + "]"} {
		d.detach("fixed", get(target), flags...)
		d.ok("wait", "fixed")
		d.ok("rm", "fixed")
	}
	for _, deny := range []string{"evil.example.net", evilAddress} {
		d.detach("denied", get(deny), append(flags, "--deny", deny)...)
		d.ok("wait", "denied")
		d.ok("rm", "denied")
	}
	if all := d.questions(t); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	for _, target := range []string{"evil.example.net", evilAddress} {
		d.detach("asked", get(target), flags...)
		if asked := d.question(t); asked.What != "connect to "+target+":80" {
			t.Errorf("control: %+v", asked)
		}
		d.ok("rm", "-f", "asked")
	}
	if n.visited("tcp " + evilAddress + ":80") {
		t.Error("it was reached")
	}
}

// The name is resolved behind the yes, and checked then: an address of the host's own network is refused, also where the name had a
// public one when it was asked about. The control is the same with the public one.
func TestANameThatMovesWhileItWaits(t *testing.T) {
	d, n := askingHost(t)
	for address, reached := range map[string]bool{lanAddress: false, siteAddress: true} {
		name := fmt.Sprintf("moves%d.example.com", len(address))
		n.zone.rebind(name+".", siteAddress)
		d.detach("moves", "curl -sSf -m 60 http://"+name+"/", "--network", "allowlist", "--ask", "net")
		asked := d.question(t)
		n.zone.rebind(name+".", address)
		d.ok("approvals", "allow", asked.ID)
		if r := d.clove("wait", "moves"); (strings.TrimSpace(r.stdout) == "0") != reached {
			t.Errorf("%s: %s%s", address, r.stdout, d.ok("logs", "moves"))
		}
		d.ok("rm", "moves")
	}
	if n.visited("tcp " + lanAddress + ":80") {
		t.Error("it reached an address of the host's network")
	}
}

// The agent cannot answer for its owner: no socket of cloved's is inside, also with the owner's user and folders that the owner binds in.
// The control is a link to the socket in such a folder, which a user made on purpose: there the agent reaches cloved.
func TestAnAgentHasNoSocketToAnswerAt(t *testing.T) {
	d := newCloved(t)
	dir := filepath.Dir(d.socket)
	const reach = `import socket,sys,os
for base in sys.argv[1:]:
    for folder, _, names in os.walk(base):
        for name in names:
            s = socket.socket(socket.AF_UNIX)
            try: s.connect(os.path.join(folder, name)); print("reached", folder, name)
            except OSError: pass
`
	inside := func(flags ...string) string {
		r := d.clove(append(append([]string{"run", "--rm", "--network", "allowlist", "--ask", "net", "--user", "0"}, flags...), "--", "python3", "-c", reach, "/run", "/tmp", "/var", "/bound", dir)...)
		return r.stdout + r.stderr
	}
	if out := inside("-v", userDir(t, nil)+":/bound"); strings.Contains(out, "reached") {
		t.Errorf("%s", out)
	}
	linked := userDir(t, nil)
	if err := os.Link(d.socket, linked+"/other"); err != nil {
		t.Fatal(err)
	}
	if out := inside("-v", linked+":/bound"); !strings.Contains(out, "reached /bound other") {
		t.Errorf("control: %s", out)
	}
}

// killSupervisor ends the supervisor of a run as a crash does.
func killSupervisor(t *testing.T, d *cloved, name string) {
	t.Helper()
	pid := d.inspect(name).Lease.SupervisorPID
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
