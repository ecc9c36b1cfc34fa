//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// A layer without a record opens for its owner, written with the owner's rights, and for root;
// for another member it does not exist. One without a description opens for root alone. The
// control is the owner's run before the store was lost.
func TestDaemonLostLayerIsItsOwners(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	workspace := t.TempDir()
	if err := os.Chmod(filepath.Dir(workspace), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"own", "to"} {
		path := filepath.Join(workspace, dir)
		if err := os.Mkdir(path, 0o755); err != nil || os.Chown(path, memberUID, memberUID) != nil {
			t.Fatal(err)
		}
	}
	own, to := filepath.Join(workspace, "own"), filepath.Join(workspace, "to")
	started := d.as(memberUID, group, "run", "-d", "--name", "mine", "--workspace", own, "--", "sh", "-c", "echo text >new")
	id := strings.TrimSpace(started.stdout)
	if r := d.as(memberUID, group, "wait", "mine"); started.code != 0 || r.code != 0 {
		t.Fatalf("%s%s", started.stderr, r.stderr)
	}
	if r := d.as(memberUID, group, "diff", "mine"); r.stdout != "A /workspace/new\n" {
		t.Fatalf("control: %s%s", r.stdout, r.stderr)
	}
	d.stop(unix.SIGTERM)
	if err := os.Remove(filepath.Join(d.state, "clove.db")); err != nil {
		t.Fatal(err)
	}
	unknown := string(agent.NewID())
	image := filepath.Join(d.state, "layers", id+".img")
	if text, err := os.ReadFile(image); err != nil || os.WriteFile(filepath.Join(d.state, "layers", unknown+".img"), text, 0o600) != nil {
		t.Fatal(err)
	}
	d.serve()

	for _, row := range []struct {
		who  string
		uid  uint32
		id   string
		open bool
	}{{"owner", memberUID, id, true}, {"root", 0, id, true}, {"another member", otherUID, id, false},
		{"owner of the unknown", memberUID, unknown, false}, {"root of the unknown", 0, unknown, true}} {
		r := d.as(row.uid, group, "diff", "lost/"+row.id)
		if (r.stdout == "A /workspace/new\n") != row.open || (r.code == 0) != row.open {
			t.Errorf("diff by %s: %d, %s%s", row.who, r.code, r.stdout, r.stderr)
		}
		if row.open {
			continue
		}
		if r = d.as(row.uid, group, "apply", "--yes", "--to", to, "lost/"+row.id); r.code == 0 || !strings.Contains(r.stderr, "there is no") {
			t.Errorf("apply by %s: %d, %s%s", row.who, r.code, r.stdout, r.stderr)
		}
	}
	if r := d.as(memberUID, group, "apply", "--yes", "lost/"+id); r.code != 0 || ownerOf(t, filepath.Join(own, "new")) != memberUID {
		t.Errorf("apply: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := d.as(memberUID, group, "apply", "--yes", "--to", to, "lost/"+id); r.code != 0 || ownerOf(t, filepath.Join(to, "new")) != memberUID {
		t.Errorf("apply --to: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := d.as(memberUID, group, "apply", "--yes", "--to", "/etc", "lost/"+id); r.code == 0 {
		t.Error("a member has written to /etc")
	}
	if r := d.as(memberUID, group, "rm", "lost/"+id); r.code == 0 {
		t.Error("a member has removed it")
	}
	d.expiresLost(id)
}

// expiresLost checks that a restarted cloved removes what is older than lost_days, and not before.
func (d *cloved) expiresLost(id string) {
	d.t.Helper()
	place := filepath.Join(d.state, "lost", id)
	for _, days := range []time.Duration{1, 3} {
		if err := os.Chtimes(place, time.Time{}, time.Now().Add(-days*24*time.Hour)); err != nil {
			d.t.Fatal(err)
		}
		d.stop(unix.SIGTERM)
		d.settings = "lost_days: 2\n"
		d.serve()
		if days == 1 {
			if r := d.clove("diff", "lost/"+id); r.code != 0 {
				d.t.Errorf("it is a day old: %s", r.stderr)
			}
			continue
		}
		for deadline := time.Now().Add(patience()); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(place); os.IsNotExist(err) {
				return
			}
			if time.Now().After(deadline) {
				d.t.Fatal("it is still there")
			}
		}
	}
}
