//go:build root

package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/oci"
)

// finish waits until a container has stopped, and removes it.
func (h *held) finish(id string) {
	h.t.Helper()
	h.Await("the end of "+id, func() bool { return h.State(id).Status == specs.StateStopped })
	h.Must("delete", id)
}

// TestTheRecordSaysHowItEnded: for each kind of end.
func TestTheRecordSaysHowItEnded(t *testing.T) { newHeld(t).saysHowItEnded() }

func (h *held) saysHowItEnded() {
	t := h.t
	t.Helper()
	memory := func(s *specs.Spec) {
		limit := int64(16 << 20)
		s.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &limit, Swap: &limit}
	}
	const swell = "exec tail /dev/zero" // keeps the last line in memory, which never ends
	for name, row := range map[string]struct {
		script string
		edit   func(*specs.Spec)
		kill   string
		status agent.Status
		code   int
		signal string
		limit  string
	}{
		"zero":         {script: "exit 0", status: agent.StatusExited},
		"status":       {script: "exit 7", status: agent.StatusExited, code: 7},
		"killed":       {script: forever, kill: "KILL", status: agent.StatusSignaled, code: 137, signal: "SIGKILL"},
		"terminated":   {script: "trap 'exit 9' TERM; echo >/tmp/ready; while :; do sleep 0.1; done", kill: "TERM", status: agent.StatusExited, code: 9},
		"memory":       {script: swell, edit: memory, status: agent.StatusOOM, code: 137, signal: "SIGKILL", limit: agent.ControlMemory},
		"a child's":    {script: "sh -c '" + swell + "'; exit $?", edit: memory, status: agent.StatusOOM, code: 137, limit: agent.ControlMemory},
		"a survivor":   {script: "sh -c '" + swell + "'; exit 0", edit: memory, status: agent.StatusExited},
		"no monitor's": {script: "exit 137", edit: memory, status: agent.StatusExited, code: 137},
	} {
		id := strings.NewReplacer(" ", "-", "'", "").Replace(name)
		directory, share := h.shared()
		edits := []func(*specs.Spec){annotated(recordAt("r-" + oci.RecordID + ".json")...), share}
		if row.edit != nil {
			edits = append(edits, row.edit)
		}
		h.begin(id, h.Bundle(row.script, edits...))
		if row.kill == "TERM" {
			h.await(directory, "ready")
		}
		if row.kill != "" {
			h.Must("kill", id, row.kill)
		}
		h.finish(id)
		got := h.record("r-" + id + ".json")
		signal, limit := "", ""
		if got.Signal != nil {
			signal = *got.Signal
		}
		if got.Limit != nil {
			limit = got.Limit.Name
		}
		if got.Status != row.status || got.ExitCode != row.code || signal != row.signal || limit != row.limit {
			t.Errorf("%s: %s, %d, %q, %q", name, got.Status, got.ExitCode, signal, limit)
		}
		if got.Version != agent.RecordVersion || string(got.ID) != id || len(got.Command) != 3 || got.Usage.CPUMS == nil ||
			got.Started.IsZero() || got.Ended.Before(got.Started) || got.Enforced == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTheRecordOfADeadline: it names the deadline; the engine sees KILL.
func TestTheRecordOfADeadline(t *testing.T) {
	h := newHeld(t)
	h.begin("one", h.Bundle(forever, annotated(append(recordAt("one.json"), oci.AnnotationTimeout, "200ms", oci.AnnotationPids, "50")...)))
	h.finish("one")
	got := h.record("one.json")
	if got.Status != agent.StatusTimeout || got.ExitCode != agent.ExitTimeout || *got.Signal != "SIGKILL" || got.Limit.Name != agent.ControlWallClock ||
		got.Limit.Value != 200 || got.WallMS < 200 || got.Enforced[agent.ControlWallClock] == "" || got.Enforced[agent.ControlPids] == "" {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(filepath.Join(h.records, "one.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(h.records, ".*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestARecordIsNobodyElses: another container's record is not changed, and a container that
// names it is refused.
func TestARecordIsNobodyElses(t *testing.T) {
	h := newHeld(t)
	bundle := h.Bundle("exit 3", annotated(recordAt("one.json")...))
	for range 2 { // an engine starts the same container again
		h.begin("one", bundle)
		h.finish("one")
	}
	refuse := func(why string) {
		t.Helper()
		got := h.Do("create", "--bundle", bundle, "two")
		if got.Status != 1 || !strings.Contains(got.Err, oci.AnnotationRecord) || !strings.Contains(got.Err, oci.RecordID) {
			t.Errorf("%s: %+v", why, got)
		}
	}
	refuse("another container's")
	if got := h.record("one.json"); string(got.ID) != "one" || got.ExitCode != 3 {
		t.Errorf("%+v", got)
	}
	path := filepath.Join(h.records, "one.json")
	secret := filepath.Join(h.Directory(), "secret")
	if err := os.WriteFile(secret, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func() error{
		"a link":      func() error { return os.Symlink(secret, path) },
		"a directory": func() error { return os.Mkdir(path, 0o700) },
		"a pipe":      func() error { return unix.Mkfifo(path, 0o600) },
		"not ours":    func() error { return os.WriteFile(path, []byte(`{"id":"three"}`), 0o600) },
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		refuse(name)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestOnlyTheNodeMovesRecords: the container's environment, which its author writes, does not.
func TestOnlyTheNodeMovesRecords(t *testing.T) {
	h := newHeld(t)
	elsewhere := filepath.Join(h.Directory(), "elsewhere")
	h.begin("one", h.Bundle("exit 0", annotated(recordAt("one.json")...), func(s *specs.Spec) {
		s.Process.Env = append(s.Process.Env, "CLOVE_ROOT="+elsewhere)
	}))
	h.finish("one")
	h.record("one.json")
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("the container chose where its record goes")
	}
}

func TestWhatNeverRanHasNoRecord(t *testing.T) {
	h := newHeld(t)
	h.Must("create", "--bundle", h.Bundle(forever, annotated(recordAt("one.json")...)), "one")
	h.Must("delete", "one")
	if _, err := os.Stat(filepath.Join(h.records, "one.json")); !os.IsNotExist(err) {
		t.Errorf("a record of nothing: %v", err)
	}
}

// TestARecordWithoutItsMonitorIsHonest: no monitor saw the end. That the deadline has passed by
// the next call does not show that it was the cause.
func TestARecordWithoutItsMonitorIsHonest(t *testing.T) {
	h := newHeld(t)
	for id, passed := range map[string]bool{"one": false, "two": true} {
		pid := h.begin(id, h.Bundle(forever, annotated(append(recordAt(id+".json"), oci.AnnotationTimeout, "1h")...)))
		h.killMonitor()
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		h.Await("its burial", func() bool { return unix.Kill(pid, 0) == unix.ESRCH })
		if passed {
			h.rewrite(id, "deadline_boot_ns", bootTime(t))
		}
		h.Must("delete", id)
		if got := h.record(id + ".json"); got.Status != agent.StatusKilled || got.Error == nil || got.Error.Step != "keeper" {
			t.Errorf("its deadline has passed: %t: %+v", passed, got)
		}
	}
}

// TestAMonitorsLastRecordStands: the monitor may be killed between the record and the note that
// it exists; the next monitor did not see the end.
func TestAMonitorsLastRecordStands(t *testing.T) {
	h := newHeld(t)
	h.Must("create", "--bundle", h.Bundle("exit 3", annotated(recordAt("one.json")...)), "one")
	pid := h.State("one").Pid
	_, ended := h.watchMonitor()
	h.Must("start", "one")
	ended()
	h.Await("its burial", func() bool { return unix.Kill(pid, 0) == unix.ESRCH }) // a zombie's status would be known to the next one
	h.rewrite("one", "phase", "started")
	h.Must("delete", "one")
	if got := h.record("one.json"); got.Status != agent.StatusExited || got.ExitCode != 3 {
		t.Errorf("%s %d: %+v", got.Status, got.ExitCode, got.Error)
	}
}

// TestARecordThatCannotBeWrittenKeepsItsContainer: until it can be written.
func TestARecordThatCannotBeWrittenKeepsItsContainer(t *testing.T) {
	h := newHeld(t)
	h.Must("create", "--bundle", h.Bundle("exit 4", annotated(recordAt("one.json")...)), "one")
	moved := h.records + ".moved"
	if err := os.Rename(h.records, moved); err != nil { // the record may be there as soon as it has started
		t.Fatal(err)
	}
	h.Must("start", "one")
	h.Await("the end", func() bool { return h.State("one").Status == specs.StateStopped })
	var got ocitest.Result
	if got = h.Do("delete", "one"); got.Status != 1 || !strings.Contains(got.Err, "record") {
		t.Errorf("%+v", got)
	}
	if err := os.Rename(moved, h.records); err != nil {
		t.Fatal(err)
	}
	h.Must("delete", "one")
	if got := h.record("one.json"); got.ExitCode != 4 {
		t.Errorf("%+v", got)
	}
}

// TestARecordThatCannotBeWrittenHoldsUpNoDeadline: the deadline also ends daemons that the
// first process left, which could fill the disk.
func TestARecordThatCannotBeWrittenHoldsUpNoDeadline(t *testing.T) {
	h := newHeld(t)
	h.longer(func(left time.Duration) (enough bool) {
		var spec *specs.Spec
		directory, share := h.shared()
		h.Must("create", "--bundle", h.Bundle(daemons, hostPids, strangers, share, func(s *specs.Spec) { spec = s },
			annotated(append(recordAt("one.json"), oci.AnnotationTimeout, "1h")...)), "one")
		pid := h.State("one").Pid
		moved := h.records + ".moved"
		if err := os.Rename(h.records, moved); err != nil {
			t.Fatal(err)
		}
		h.Must("start", "one")
		h.await(directory, "ready")
		h.Await("the end of the first process", func() bool { return !runs(pid) })
		if left := members(spec); len(left) != 3 {
			t.Fatalf("%d daemons are left", len(left))
		}
		h.awaitComplaints("one", 1)
		h.expireIn("one", left)
		h.awaitComplaints("one", 2)
		enough = len(members(spec)) == 3
		h.Await("the deadline", func() bool { return len(members(spec)) == 0 })
		if got := h.Do("delete", "one"); got.Status != 1 || !strings.Contains(got.Err, "record") {
			t.Errorf("the record could be written: %+v", got)
		}
		if err := os.Rename(moved, h.records); err != nil {
			t.Fatal(err)
		}
		h.Must("delete", "one")
		h.record("one.json")
		return enough
	})
}

// awaitComplaints waits until so many monitors have logged that they could not write the
// record.
func (h *held) awaitComplaints(id string, count int) {
	h.t.Helper()
	h.Await("complaints of the record", func() bool {
		text, _ := os.ReadFile(filepath.Join(h.Root, id, "keeper.log"))
		return strings.Count(string(text), "cannot write the record") >= count
	})
}
