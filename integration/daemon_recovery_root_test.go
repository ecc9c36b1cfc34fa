//go:build root

package integration

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// A supervisor dies while its agent is frozen. A frozen process does not end, on v1 not even
// by KILL, so the clean-up must thaw it. cloved does that while it runs, and when it comes
// back.
func TestDaemonBuriesThePaused(t *testing.T) {
	for name, alive := range map[string]bool{"cloved lives": true, "cloved is dead": false} {
		t.Run(name, func(t *testing.T) {
			d := newCloved(t)
			d.detach("frozen", "sleep 1000")
			d.ok("pause", "frozen")
			run := d.inspect("frozen")
			if !alive {
				d.stop(unix.SIGKILL)
			}
			if err := unix.Kill(run.Lease.SupervisorPID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if !alive {
				d.serve()
			}
			if r := d.clove("wait", "frozen"); r.code != agent.ExitKilled {
				t.Errorf("%d, %s", r.code, r.stderr)
			}
			if !exits(t, run.PID, patience()) {
				t.Error("the agent is still there")
			}
			if record := d.inspect("frozen").Record; record == nil || record.Error == nil {
				t.Errorf("%+v", record)
			}
		})
	}
}

// refusedStart starts a cloved that must not start, and returns its output.
func (d *cloved) refusedStart(flags ...string) string {
	d.t.Helper()
	args := append([]string{"--root", d.state, "--run-dir", d.run, "--config", d.config()}, flags...)
	out, err := exec.Command(filepath.Join(d.bin, "cloved"), args...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "hint:") {
		d.t.Errorf("%v, %s", err, out)
	}
	return string(out)
}

// A store of a later version is refused and not changed; one of an earlier version is
// migrated, with a copy, and its live agent is known.
func TestDaemonSchemas(t *testing.T) {
	d := newCloved(t)
	d.detach("lives", "sleep 1000")
	before := d.inspect("lives")
	path := filepath.Join(d.state, "clove.db")
	schema := func(version string, change func(*bbolt.Tx) error) {
		t.Helper()
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			return errors.Join(change(tx), tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte(version)))
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	d.stop(unix.SIGKILL)
	schema("99", func(*bbolt.Tx) error { return nil })
	if said := d.refusedStart(); !strings.Contains(said, "schema 99") {
		t.Error(said)
	}
	schema("1", func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("occurrences")) })
	d.serve()
	if after := d.inspect("lives"); after.State != agent.StateRunning || after.PID != before.PID {
		t.Errorf("%+v", after)
	}
	if _, err := os.Stat(path + ".schema1"); err != nil {
		t.Error(err)
	}
	d.ok("stop", "-t", "0s", "lives")
}

// The socket of a cloved that was killed is replaced; a file that is not a socket, and a
// socket that a process serves, are left alone.
func TestDaemonSocketPath(t *testing.T) {
	other := newCloved(t)
	d := newCloved(t)
	d.stop(unix.SIGKILL)
	if info, err := os.Lstat(d.socket); err != nil || info.Mode()&os.ModeSocket == 0 {
		t.Fatalf("control: no socket is left: %v", err)
	}
	d.serve()
	d.ok("ps")
	d.stop(unix.SIGTERM)
	foreign := filepath.Join(d.state, "precious")
	if err := os.WriteFile(foreign, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := d.refusedStart("--socket", foreign); !strings.Contains(said, "no socket") {
		t.Error(said)
	}
	if text, err := os.ReadFile(foreign); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
	if said := d.refusedStart("--socket", other.socket); !strings.Contains(said, "another process") {
		t.Error(said)
	}
	other.ok("ps")
	d.serve()
}
