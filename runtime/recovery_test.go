package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// A supervisor that died before it was in the store leaves a run directory, and the run is
// still queued: the next start takes the directory over. The control is a supervisor that is
// alive.
func TestADeadDirectoryIsTakenOver(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	spec := testSpec()
	first, err := makeRunDirectory(r.paths, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := makeRunDirectory(r.paths, spec.ID); !errors.Is(err, fs.ErrExist) {
		t.Errorf("control: a living one's: %v", err)
	}
	if err := os.WriteFile(filepath.Join(first.path, recordFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	first.letGo() // as the kernel does
	second, err := makeRunDirectory(r.paths, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(second.path, recordFile)) {
		t.Error("what the dead one wrote is there still")
	}
	if err := second.remove(); err != nil {
		t.Error(err)
	}
}

// The removal of a run removes its log, and gc finds a log without a run. The control is the
// log of a run that exists.
func TestLogsGoWithTheirRuns(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run, _ := deadRun(t, r, nil)
	if _, err := r.GC(); err != nil {
		t.Fatal(err)
	}
	orphan := agent.NewID()
	for _, id := range []agent.ID{run.Spec.ID, orphan} {
		if err := os.MkdirAll(r.paths.Log(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := r.Check()
	if err != nil || len(problems) != 1 || problems[0].Kind != ProblemLog || problems[0].Subject != string(orphan) {
		t.Errorf("check: %v, %v", problems, err)
	}
	if _, err := r.GC(); err != nil || exists(r.paths.Log(orphan)) || !exists(r.paths.Log(run.Spec.ID)) {
		t.Errorf("gc: %v", err)
	}
	if err := r.Remove(run.Spec.Name); err != nil || exists(r.paths.Log(run.Spec.ID)) {
		t.Errorf("remove: %v", err)
	}
}

// A run with --rm leaves no log, however it ends.
func TestForgottenRunsLeaveNoLog(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	forgotten := func(spec *agent.Spec) { spec.Remove = true }
	lost, _ := deadRun(t, r, forgotten)
	ended, _ := deadRun(t, r, forgotten)
	ended = apply(t, r, ended, agent.EventStarted)
	refused := testSpec()
	refused.Remove = true
	removed := agent.NewID() // while its supervisor was starting
	if err := r.withStore(func(s *store.Store) error { _, err := s.Enqueue(agent.Run{Spec: refused}); return err }); err != nil {
		t.Fatal(err)
	}
	each := []agent.ID{ended.Spec.ID, lost.Spec.ID, refused.ID, removed}
	for _, id := range each {
		if err := os.MkdirAll(filepath.Join(r.paths.Log(id), "log"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	record := recorded(ended, outcome{exitKnown: true}, time.Now())
	record.ID, record.Name, record.Command = ended.Spec.ID, ended.Spec.Name, ended.Spec.Command
	err := errors.Join(r.conclude(ended, agent.EventRecorded, record, false), r.Refuse(refused.ID, errors.New("no")), r.Refuse(removed, errors.New("no")))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range each {
		if exists(r.paths.Log(id)) != (id == lost.Spec.ID) {
			t.Errorf("before gc the log of %s is wrong", id)
		}
	}
	if _, err := r.GC(); err != nil {
		t.Fatal(err)
	}
	for _, id := range each {
		if exists(r.paths.Log(id)) {
			t.Errorf("the log of %s is left", id)
		}
	}
}

// If neither the store nor the run directory takes a record, the supervisor waits until one
// does. The control is a run in the foreground, whose user gets the error at once.
func TestARecordWaitsForItsPlace(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	spec := testSpec()
	dir, err := makeRunDirectory(r.paths, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(dir.path, recordFile)
	if err := os.MkdirAll(filepath.Join(blocked, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	record := recorded(agent.Run{}, outcome{exitKnown: true, code: 5}, time.Now())
	foreground := &launch{runtime: r, spec: spec, dir: &runDirectory{path: dir.path, lock: dir.lock}}
	if err := foreground.leave(record, errors.New("full")); err == nil {
		t.Error("control: nothing is reported")
	}
	left := make(chan error, 1)
	spec.Detached = true
	detached := &launch{runtime: r, spec: spec, dir: &runDirectory{path: dir.path, lock: dir.lock}}
	go func() { left <- detached.leave(record, errors.New("full")) }()
	select {
	case err := <-left:
		t.Fatalf("it gave up: %v", err)
	default:
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	<-left
	if !exists(filepath.Join(dir.path, recordFile)) {
		t.Error("there is no record")
	}
}
