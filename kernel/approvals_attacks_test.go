package kernel

import (
	"fmt"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/approvals"
	"clove.run/clove/store"
)

// alsoAsking is a run beside that of a rig, which asks people as well.
func (r *rig) alsoAsking(uid uint32, name string) *rig {
	run := newRun(uid, agent.Kernel{Asks: []string{agent.AskNet}})
	run.Spec.Name, run.Spec.Network = name, agent.NetworkAllowlist
	return r.as(run)
}

// Ten thousand different questions of one agent are bounded: 32 wait, the others are refused and leave no row. Another run's question is
// entered and answered as before. The control has no bound: the rows of the flood wait, and stay.
func TestAFloodOfQuestionsIsBounded(t *testing.T) {
	t.Parallel()
	r := asking(t)
	other := r.alsoAsking(1000, "other")
	waiting := 0
	for i := range 10_000 {
		if _, err := r.asksFor(fmt.Sprintf("h%d.example.com:443", i)); err == nil {
			waiting++
		} else {
			wantCode(t, err, api.CodeBusy)
		}
	}
	rows := func() (count int) {
		must(t, r.engine.Read(func(tx *store.KernelTx) error {
			all, err := approvals.Rows.Below(tx, store.RunKey(r.run.Spec.ID, ""))
			count = len(all)
			return err
		}))
		return count
	}
	if waiting != 32 || rows() != 32 {
		t.Errorf("%d wait of %d rows", waiting, rows())
	}
	asked, err := other.asksFor("api.example.com:443")
	must(t, err)
	if got, err := other.responds(1000, yes(asked)); err != nil || got.State != api.ApprovalAllowed {
		t.Errorf("%+v, %v", got, err)
	}
	unbounded := approvals.Rows
	unbounded.Indexes = nil
	must(t, r.engine.Update("control", func(tx *store.KernelTx) error {
		for i := range 1000 {
			row := approvals.Row{Approval: api.Approval{ID: fmt.Sprintf("%016x", i), State: api.ApprovalWaits, Kind: api.ApproveNet, Run: r.run.Spec.ID, What: "connect", Digest: "sha256:0", Expires: r.engine.Now().Add(time.Hour)}}
			if err := unbounded.Put(tx, &row); err != nil {
				return err
			}
		}
		return nil
	}))
	if rows() != 1032 {
		t.Errorf("control: %d rows", rows())
	}
	must(t, r.engine.Update("control", func(tx *store.KernelTx) (err error) {
		for i := 0; i < 1000 && err == nil; i++ {
			err = unbounded.Delete(tx, store.RunKey(r.run.Spec.ID, fmt.Sprintf("%016x", i)))
		}
		return err
	}))
}

// A clock that is set back brings back no question whose time was over: it stays refused. A yes for a time holds by the wall clock, as
// every grant does: set beyond its end, the clock ends it at once. The control is the clock as it was: the yes holds.
func TestQuestionsWhenTheClockJumps(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{0, -2 * time.Hour, -48 * time.Hour} {
		r := asking(t)
		standings := r.attach(false)
		<-standings
		old, err := r.asksFor("old.example.com:443")
		must(t, err)
		r.clock.Add(3601)
		r.alarm.set(r.engine.Now())
		if got := r.answered(old.ID); got.State != api.ApprovalExpired {
			t.Errorf("%+v", got)
		}
		r.turn(back)
		must(t, r.ClockSet())
		if got, err := r.responds(1000, yes(old)); err == nil {
			t.Errorf("by %s: a question whose time was over is answered: %+v", back, got)
		}
		if again, err := r.asksFor("old.example.com:443"); err != nil || again.State != api.ApprovalExpired {
			t.Errorf("by %s: %+v, %v", back, again, err)
		}
		allowed, err := r.asksFor("new.example.com:443")
		must(t, err)
		given := yes(allowed)
		given.ForMS = 60_000
		_, err = r.responds(1000, given)
		must(t, err)
		if again, err := r.asksFor("new.example.com:443"); err != nil || again.ID != allowed.ID || again.State != api.ApprovalAllowed {
			t.Errorf("control: %+v, %v", again, err)
		}
		r.turn(61 * time.Second)
		if again, err := r.asksFor("new.example.com:443"); err != nil || again.State != api.ApprovalWaits {
			t.Errorf("by %s, behind the time of a yes: %+v, %v", back, again, err)
		}
	}
}

// answered waits until a question does not wait any more.
func (r *rig) answered(id string) api.Approval {
	r.t.Helper()
	result, err := asks[api.ApprovalResult](r, 1000, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: id, Answered: true})
	must(r.t, err)
	return result.Approval
}
