package kernel

import (
	"clove.run/clove/kernel/service"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// numbers are the numbers in the queue of the changes that the log has, in its order.
func numbers(all []audit.Entry) (found []uint64) {
	for _, e := range all {
		if e.Queue != 0 {
			found = append(found, e.Queue)
		}
	}
	return found
}

// wantNumbers fails the test unless the numbers are those from first on, each once.
func wantNumbers(t *testing.T, got []uint64, first uint64, count int) {
	t.Helper()
	for i, n := range got {
		if n != first+uint64(i) {
			t.Fatalf("the log has the changes %v", got)
		}
	}
	if len(got) != count {
		t.Errorf("%d changes, want %d: %v", len(got), count, got)
	}
}

// Every change is in the log once, in the order in which it was made, whichever caller
// made it; a call that only reads is not.
func TestChangesAreInTheLogInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100000"}})
	const callers, each = 16, 8
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				if _, err := r.asAgent(agents.BudgetCharge.Name, `{"amounts":{"reviews":1}}`); err != nil {
					t.Error(err)
				}
				if _, err := r.asAgent(agents.BudgetGet.Name, api.Nothing{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must(t, r.admin(methods.BudgetRaise.Name, `{"amounts":{"reviews":5}}`))
	entries := r.entries()
	wantNumbers(t, numbers(entries), 1, 1+callers*each+1)
	if e := entries[0]; e.Kind != audit.KindStart || e.Principal != "uid:1000" || e.Run != r.run.Spec.ID {
		t.Errorf("first %+v", e)
	}
	if e := entries[1]; e.Kind != audit.KindDecision || e.Method != agents.BudgetCharge.Name || e.What != "reviews=1" || e.Verdict != audit.VerdictAllow || e.Principal != audit.PrincipalRun(r.run.Spec.ID) {
		t.Errorf("then %+v", e)
	}
	if e := entries[len(entries)-1]; e.Kind != audit.KindAdmin || e.Method != methods.BudgetRaise.Name || e.What != "reviews=5" || e.Principal != "uid:1000" {
		t.Errorf("last %+v", e)
	}
	if report, err := audit.Verify(r.logDir(), nil, nil); err != nil || report.Problem != nil {
		t.Errorf("%+v, %v", report, err)
	}
}

// A repetition of a call with a key is not a second change.
func TestARepetitionIsInTheLogOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	for range 3 {
		_, err := r.asAgent(agents.BudgetCharge.Name, `{"amounts":{"reviews":1},"key":"one"}`)
		must(t, err)
	}
	wantNumbers(t, numbers(r.entries()), 1, 2)
}

// A process that was killed after some of the queue was in the log, and before the queue
// forgot it, leaves these entries in both. The next one adds those that are missing, and no
// other. That is true also where refusals, which are in no queue, follow in the log.
func TestACrashBetweenLogAndQueue(t *testing.T) {
	t.Parallel()
	for _, refusals := range []int{0, 1, 256 - 1, 256, 5 * 256} {
		for moved := range 4 {
			t.Run(fmt.Sprintf("%d moved, %d refusals", moved, refusals), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
				r.close()
				r.leave(3, moved, refusals)
				r.open()
				r.attach(false)
				r.charge("reviews", 1)
				wantNumbers(t, numbers(r.entries()), 1, 1+3+1)
			})
		}
	}
}

// leave leaves the files as a process does that is killed: changes in the queue, of which
// some are in the log already, and refusals behind these.
func (r *rig) leave(changes, moved, refusals int) {
	r.t.Helper()
	file, err := store.OpenKernel(filepath.Join(r.dir, "kernel.db"), patience, Tables()...)
	must(r.t, err)
	var queue []store.AuditEntry
	must(r.t, file.Update(func(tx *store.KernelTx) (err error) {
		for range changes {
			if err := service.Record(tx, audit.Entry{Kind: audit.KindDecision, Method: agents.BudgetCharge.Name, Run: r.run.Spec.ID}); err != nil {
				return err
			}
		}
		queue, err = store.AuditQueue.After(tx, 0, changes)
		return err
	}))
	must(r.t, file.Close())
	log, err := audit.Open(r.logDir(), audit.RunOptions())
	must(r.t, err)
	entries := make([]audit.Entry, moved)
	for i, q := range queue[:moved] {
		must(r.t, json.Unmarshal(q.Entry, &entries[i]))
		entries[i].Queue = q.Number
	}
	_, err = log.Append(entries...)
	must(r.t, err)
	for range refusals {
		must(r.t, log.Enqueue(audit.Entry{Kind: audit.KindDecision, Verdict: audit.VerdictDeny}))
	}
	must(r.t, log.Close())
}

// A kernel.db that was made anew, or is from a backup, counts from a lower number than the
// log has. Its changes are in the log all the same.
func TestAnOlderFileBesideTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	backup := filepath.Join(t.TempDir(), "kernel.db")
	must(t, r.file.Backup(backup))
	for range 5 {
		r.charge("reviews", 1)
	}
	r.close()
	for round, restore := range []func(path string) error{os.Remove, func(path string) error { return os.Rename(backup, path) }} {
		must(t, restore(filepath.Join(r.dir, "kernel.db")))
		r.open()
		r.attach(true)
		r.charge("reviews", 1)
		entries := r.entries()
		last := entries[len(entries)-1]
		if last.Method != agents.BudgetCharge.Name {
			t.Errorf("round %d: the last entry is %+v", round, last)
		}
		wantNumbers(t, numbers(entries), 1, 6+2*(round+1))
	}
}

// Entries that wait while the log cannot take them are moved later, in order.
func TestTheQueueWaitsForTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	must(t, r.log.Close())
	r.charge("reviews", 1) // its entry is in kernel.db, so the change is not lost
	if err := r.Kernel.Close(); err == nil {
		t.Error("the last entries were moved into a closed log")
	}
	must(t, r.file.Close())
	r.open()
	r.attach(false)
	wantNumbers(t, numbers(r.entries()), 1, 2)
}

// The start of a run is in the log soon, also where its agent never calls.
func TestAStartIsInTheLogWithoutACall(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"cpu_ms=1000"}})
	for starts := 1; starts <= 2; starts++ {
		for deadline := time.Now().Add(patience); ; runtime.Gosched() {
			var found []audit.Entry
			must(t, audit.Query(r.logDir(), audit.Filter{Kind: audit.KindStart}, func(e audit.Entry) error { found = append(found, e); return nil }))
			if len(found) == starts {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d starts are in the log, want %d", len(found), starts)
			}
		}
		if starts == 1 {
			r.attach(true)
		}
	}
}

// Entries that the log has leave the queue with the next call that changes something, and at the
// end.
func TestTheQueueForgetsWhatTheLogHas(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	r.charge("reviews", 1)
	for deadline := time.Now().Add(patience); r.Waiting() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the log does not get the entries")
		}
	}
	r.charge("reviews", 1)
	var queue []store.AuditEntry
	queued := func(tx *store.KernelTx) (err error) {
		queue, err = store.AuditQueue.After(tx, 0, 10)
		return err
	}
	must(t, r.file.Read(queued))
	if len(queue) != 1 || queue[0].Number != 3 {
		t.Errorf("the queue has %d entries: %v", len(queue), queue)
	}
	must(t, r.Kernel.Close())
	must(t, r.file.Read(queued))
	if len(queue) != 0 {
		t.Errorf("at the end the queue has %d entries", len(queue))
	}
	r.serve(r.config) // for the rig's end
	wantNumbers(t, numbers(r.entries()), 1, 3)
}
