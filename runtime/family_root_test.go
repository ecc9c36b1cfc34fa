//go:build root

package runtime

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/cgroups"
	"clove.run/clove/store"
)

// relatives are a run whose agent may start others, and what it is said to have started: the rows of
// children are stored by the test, as kernel/spawn does.
type relatives struct {
	t *testing.T
	r *Runtime
}

// member is one run of a family.
type member struct {
	*liveAgent
	run agent.Run
}

// unshared is a Kernel of runs that spend nothing and ask for nothing.
type unshared struct{}

func (unshared) Attach(_ context.Context, _ agent.Run, changed func(api.Standing)) error {
	changed(api.Standing{})
	return nil
}
func (unshared) Serve(ctx context.Context, _ agent.ID, _ *os.File) error { <-ctx.Done(); return nil }
func (unshared) Call(context.Context, agent.ID, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("no call is expected")
}
func (unshared) Asked(context.Context, string, func(api.Approval)) (api.Approval, error) {
	return api.Approval{}, errors.New("unshared")
}
func (unshared) Ask(context.Context, api.ApprovalAskParams, func(api.Approval)) (api.Approval, error) {
	return api.Approval{}, nil
}

func (unshared) Meter(context.Context, agent.ID, int, map[string]int64) error { return nil }

// mayStartOthers gives a run a tree.
func mayStartOthers(spec *agent.Spec) { spec.Kernel.Budgets = []string{"children=8"} }

// begin runs a script as a child of parent, or as a run that a person started, and returns once
// it executes.
func (f *relatives) begin(parent *member, script string, change func(*agent.Run)) *member {
	f.t.Helper()
	m, err := f.try(parent, script, change)
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// try is begin for a start that may fail.
func (f *relatives) try(parent *member, script string, change func(*agent.Run)) (*member, error) {
	f.t.Helper()
	spec := sleeper()
	spec.Command = []string{"sh", "-c", script}
	run := agent.Run{Spec: spec, Created: time.Now(), Queue: agent.NewQueueState(spec, time.Now())}
	if parent != nil {
		run.Parent, run.Above = parent.run.Spec.ID, parent.run.Under()
		run.Spec.Detached, run.Spec.Limits.DiskBytes = true, parent.run.Spec.Limits.DiskBytes/4
	}
	if change != nil {
		change(&run)
	}
	if parent != nil {
		if err := f.r.withStore(func(s *store.Store) error { _, err := s.Enqueue(run); return err }); err != nil {
			f.t.Fatal(err)
		}
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	a := &liveAgent{t: f.t, out: out, lines: bufio.NewReader(out), record: make(chan agent.Record, 1)}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	started, failed, ended := make(chan *Live, 1), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		record, err := f.r.Run(ctx, run.Spec, IO{Stdout: theirs, Stderr: os.Stderr, Kernel: unshared{}, Started: func(l *Live) { started <- l }})
		theirs.Close()
		failed <- err
		a.record <- record
	}()
	f.t.Cleanup(func() { a.cancel(); out.Close(); <-ended })
	select {
	case a.Live = <-started:
		return &member{a, run}, nil
	case err := <-failed:
		if err == nil {
			err = fmt.Errorf("%+v", (<-a.record).Error)
		}
		return nil, err
	}
}

// lease is what the store has of a member's place on the host.
func (m *member) lease(r *Runtime) map[string]string {
	run, err := r.Get(string(m.run.Spec.ID))
	if err != nil || run.Lease == nil {
		m.t.Fatalf("%+v, %v", run, err)
	}
	return run.Lease.Cgroups
}

func newRelatives(t *testing.T) *relatives {
	t.Helper()
	f := &relatives{t, newRuntime(t)}
	t.Cleanup(func() {
		if problems, err := f.r.Check(); err != nil || len(problems) != 0 {
			t.Errorf("check: %v, %v", problems, err)
		}
	})
	return f
}

func parentWith(change func(*agent.Limits)) func(*agent.Run) {
	return func(run *agent.Run) {
		mayStartOthers(&run.Spec)
		change(&run.Spec.Limits)
	}
}

const mib = 1 << 20

// holds is a script that says so when it has so many MiB of memory.
func holds(mebibytes int) string {
	return fmt.Sprintf("exec python3 -c 'import time\nx = bytearray(%d << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint(\"has it\", flush=True)\ntime.sleep(1000)'", mebibytes)
}

// A parent and two children have 64 MiB together, although each may have 64 MiB. The control is
// three runs without a parent, which have 120 MiB.
func TestTheSumOfAFamilyIsHeld(t *testing.T) {
	f := newRelatives(t)
	small := func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes = 64*mib, 64*mib }
	var alone []*member
	for range 3 {
		m := f.begin(nil, holds(40), func(run *agent.Run) { small(&run.Spec.Limits) })
		m.line()
		alone = append(alone, m)
	}
	for _, m := range alone {
		if stats, err := m.Stats(); err != nil || *stats.MemoryBytes < 40*mib {
			t.Fatalf("without a tree: %+v, %v", stats, err)
		}
		m.cancel()
		m.ends()
	}

	parent := f.begin(nil, "echo here; exec sleep 1000", parentWith(small))
	parent.line()
	children := []*member{}
	for range 2 {
		m, err := f.try(parent, holds(40), func(run *agent.Run) { small(&run.Spec.Limits) })
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, m)
	}
	tree := cgroups.OpenTree(parent.lease(f.r))
	var ended agent.Record
	select {
	case ended = <-children[0].record:
	case ended = <-children[1].record:
	case ended = <-parent.record:
	case <-time.After(soon):
		t.Fatal("no one met the limit of the tree")
	}
	if ended.Status != agent.StatusOOM || ended.Limit == nil || ended.Limit.Name != agent.LimitTreeMemory {
		t.Errorf("the one that was hit: %s %+v", ended.Status, ended.Limit)
	}
	// The kernel lets a process that it kills go on over the limit by some pages.
	if stats, err := tree.Stats(); err != nil || *stats.MemoryPeakBytes > 65*mib {
		t.Errorf("together they had %d bytes, %v", *stats.MemoryPeakBytes, err)
	}
}

// A fork bomb in a child has the processes of its parent. The control is a parent that has more, with the same
// child.
func TestAForkBombOfAChildIsBoundedByItsParent(t *testing.T) {
	f := newRelatives(t)
	for _, c := range []struct{ most, least int64 }{{40, 38}, {400, 100}} { // the second is the control
		parent := f.begin(nil, "exec sleep 1000", parentWith(func(l *agent.Limits) { l.Pids = c.most }))
		// A shell ends when it cannot fork. The one above it stays, and with it what was forked.
		child := f.begin(parent, `sh -c 'i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done' 2>/dev/null; exec sleep 1000`,
			func(run *agent.Run) { run.Spec.Limits.Pids = 400 })
		tree := cgroups.OpenTree(parent.lease(f.r))
		waitUntil(t, fmt.Sprintf("they have %d processes", c.least), func() bool {
			stats, err := tree.Stats()
			return err == nil && stats.Pids != nil && *stats.Pids >= c.least
		})
		if stats, err := tree.Stats(); err != nil || *stats.Pids > c.most {
			t.Errorf("together they have %d processes, %v", *stats.Pids, err)
		}
		child.cancel()
		child.ends()
		parent.cancel()
		parent.ends()
	}
}

// waitUntil polls for what no event says.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// The end of a parent ends those below it, at once, and the records say why. The tree goes with
// the last.
func TestChildrenEndWithTheirParent(t *testing.T) {
	f := newRelatives(t)
	parent := f.begin(nil, "exec sleep 1000", parentWith(func(*agent.Limits) {}))
	child := f.begin(parent, "trap '' TERM; while :; do sleep 1; done", func(run *agent.Run) { mayStartOthers(&run.Spec) })
	grandchild := f.begin(child, "exec sleep 1000", nil)
	tree := filepath.Dir(parent.lease(f.r)[firstKey(parent.lease(f.r))])
	parent.cancel()
	if record := parent.ends(); record.Status != agent.StatusSignaled {
		t.Errorf("the parent: %s", record.Status)
	}
	for above, m := range map[*member]*member{parent: child, child: grandchild} {
		record := m.ends()
		if record.Status != agent.StatusKilled || record.Error == nil || record.Error.Step != agent.StepParent || !strings.Contains(record.Error.Message, above.run.Spec.Name) {
			t.Errorf("%s %+v", record.Status, record.Error)
		}
	}
	if exists(tree) {
		t.Errorf("%s is left", tree)
	}
	if _, err := f.try(child, "true", nil); err == nil || !strings.Contains(err.Error(), "does not live") {
		t.Errorf("it started without its parent: %v", err)
	}
}

func firstKey(m map[string]string) string {
	for key := range m {
		return key
	}
	return ""
}

// The disk of a child is a part of its parent's for as long as it lives. The controls are the same parent before the
// child and behind it.
func TestTheDiskOfAChildIsItsParents(t *testing.T) {
	f := newRelatives(t)
	parent := f.begin(nil, `trap 'head -c 40M /dev/zero > f 2>/dev/null; n=$(stat -c %s f); rm f; echo $((n >> 20))' USR1; echo ready; while :; do sleep 0.1; done`,
		parentWith(func(l *agent.Limits) { l.DiskBytes = 64 * mib }))
	parent.line()
	writes := func() (mebibytes int) {
		t.Helper()
		if err := parent.Signal(unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		fmt.Sscan(parent.line(), &mebibytes)
		return mebibytes
	}
	has := func(n int64) func(*agent.Run) { return func(run *agent.Run) { run.Spec.Limits.DiskBytes = n * mib } }
	if n := writes(); n != 40 {
		t.Fatalf("without a child there is place for %d MiB", n)
	}
	child := f.begin(parent, "exec sleep 1000", has(32))
	if n := writes(); n < 16 || n > 32 {
		t.Errorf("beside a child with 32 MiB of 64 it wrote %d", n)
	}
	if stats, err := parent.Stats(); err != nil || *stats.Usage.DiskBytes > 8*mib {
		t.Errorf("what the child has counts as the parent's own: %+v, %v", stats.Usage, err)
	}
	if _, err := f.try(parent, "true", has(48)); err == nil || !strings.Contains(err.Error(), "limits.disk_bytes") {
		t.Errorf("a child started that has no space: %v", err)
	}
	child.cancel()
	child.ends()
	if n := writes(); n != 40 {
		t.Errorf("behind the child there is place for %d MiB", n)
	}
}

// A child goes on without a parent that keeps its orphans, within the parent's limits; no other
// one starts.
func TestOrphansAreKept(t *testing.T) {
	f := newRelatives(t)
	parent := f.begin(nil, "exec sleep 1000", func(run *agent.Run) {
		mayStartOthers(&run.Spec)
		run.Spec.Kernel.Orphans = agent.OrphansKeep
		run.Spec.Limits.Pids = 77
	})
	child := f.begin(parent, "while :; do echo x; sleep 0.01; done", nil)
	above := cgroups.TreesAbove(child.lease(f.r))
	if err := parent.Pause(); err != nil {
		t.Fatal(err)
	}
	if !child.silent() {
		t.Error("a child went on in its parent's pause")
	}
	parent.cancel()
	parent.ends()
	child.line() // it goes on
	if limits, err := above[0].Limits(); err != nil || limits.Pids == nil || *limits.Pids != 77 {
		t.Errorf("the tree's limits without the parent: %+v, %v", limits, err)
	}
	if _, err := f.try(parent, "true", nil); err == nil {
		t.Error("another child started without its parent")
	}
	child.cancel()
	child.ends()
}

// A child is ended at its deadline, and does not start behind it.
func TestTheDeadlineOfAChild(t *testing.T) {
	f := newRelatives(t)
	parent := f.begin(nil, "exec sleep 1000", parentWith(func(*agent.Limits) {}))
	deadline := time.Now().Add(2 * time.Second)
	for name, script := range map[string]string{"ends when it is asked": "exec sleep 1000", "does not": "trap '' TERM; while :; do sleep 0.1; done"} {
		child := f.begin(parent, script, func(run *agent.Run) { run.Deadline = time.Now().Add(2 * time.Second) })
		record := child.ends()
		if record.Status != agent.StatusTimeout || record.ExitCode != agent.ExitTimeout || record.Limit.Name != agent.ControlWallClock || record.Error.Step != agent.StepDeadline {
			t.Errorf("%s: %s %+v %+v", name, record.Status, record.Limit, record.Error)
		}
		if record.ExecutedMS == nil || *record.ExecutedMS > 2500 {
			t.Errorf("%s: it executed for %v ms", name, record.ExecutedMS)
		}
	}
	// Behind it, a start ends as the deadline does. The control has none, and starts.
	late := sleeper().ID
	if _, err := f.try(parent, "true", func(run *agent.Run) { run.Spec.ID, run.Spec.Name, run.Deadline = late, "late", deadline }); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("it started behind its deadline: %v", err)
	}
	cause := overdue(agent.Run{Spec: agent.Spec{Name: "late"}, Deadline: deadline}, time.Now())
	if err := f.r.Refuse(late, cause); err != nil { // as its supervisor does
		t.Fatal(err)
	}
	run, err := f.r.Get(string(late))
	if err != nil || run.Record == nil {
		t.Fatalf("%+v, %v", run, err)
	}
	if r := run.Record; r.Status != agent.StatusTimeout || r.ExitCode != agent.ExitTimeout || r.Limit != nil || r.Error.Step != agent.StepDeadline || !r.NotStarted() || r.Parent != parent.run.Spec.ID {
		t.Errorf("%+v, %+v", r, r.Error)
	}
	if record := f.begin(parent, "exit 3", nil).ends(); record.Status != agent.StatusExited || record.ExitCode != 3 {
		t.Errorf("the control: %+v", record)
	}
}

// The limits of a parent and its tree change together, in both directions.
func TestUpdateOfAParentChangesTheTree(t *testing.T) {
	f := newRelatives(t)
	parent := f.begin(nil, "exec sleep 1000", parentWith(func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes, l.Pids, l.CPUs = 128*mib, 128*mib, 50, 1 }))
	tree := cgroups.OpenTree(parent.lease(f.r))
	for _, to := range []struct {
		memory, pids int64
		cpus         float64
	}{{256 * mib, 20, 2}, {64 * mib, 80, 0.5}} {
		if err := parent.Update(agent.Update{MemoryBytes: &to.memory, Pids: &to.pids, CPUs: &to.cpus}); err != nil {
			t.Fatal(err)
		}
		if got, err := tree.Limits(); err != nil || *got.MemoryBytes != to.memory || *got.Pids != to.pids || *got.CPUs != to.cpus {
			t.Errorf("%+v, %v; want %+v", got, err, to)
		}
	}
	child := f.begin(parent, holds(40), func(run *agent.Run) { run.Spec.Limits.MemoryBytes, run.Spec.Limits.MemorySwapBytes = 64*mib, 64*mib })
	child.line()
	less := int64(32 * mib)
	if err := parent.Update(agent.Update{MemoryBytes: &less}); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("less than the children have: %v", err)
	}
	if got, err := tree.Limits(); err != nil || *got.MemoryBytes != 64*mib {
		t.Errorf("a refused update left %+v, %v", got, err)
	}
}

func (unshared) Answer(context.Context, api.ApprovalRespondParams) error { return nil }
