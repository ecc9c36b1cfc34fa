package daemon

import (
	"errors"
	"math"
	"os"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// as returns a call of a user on a rig that serves no socket.
func (r *rig) as(peer caller) *request {
	return &request{Context: within(r.t), peer: peer, note: func(string, any) error { return nil }}
}

// keep runs the rig's reconciler until the test ends.
func (r *rig) keep() { r.serve() }

// A panic ends only the request that caused it. The control is the same handler without the
// guard.
func TestPanicIsOneRequestsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	bad := func() (any, error) { return []int{}[len(t.Name())], nil }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the control does not panic")
			}
		}()
		_, _ = bad()
	}()
	_, err := r.d.dispatcher().contained(ownerCaller, "x", bad)
	wantCode(t, err, api.CodeInternal)
}

// A tail larger than every number of lines once made the reader of logs count below zero.
func TestTailBeyondEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("a", ownerCaller.owner, agent.StateEnded)
	must(t, os.MkdirAll(r.d.options.Paths.Log(run.Spec.ID), 0o700))
	must(t, os.WriteFile(r.d.options.Paths.Log(run.Spec.ID)+"/log", []byte(`{"stream":"stdout","text":"x"}`+"\n"), 0o600))
	must(t, r.d.cache.refresh())
	c := r.as(ownerCaller)
	c.run, _ = r.d.cache.get(run.Spec.ID)
	c.run.Record = &agent.Record{}
	lines := 0
	c.note = func(string, any) error { lines++; return nil }
	for _, tail := range []int{math.MaxInt, math.MaxInt / 2, 1 << 40, -1, math.MinInt} {
		lines = 0
		if _, err := r.d.logReader().read(c, api.LogsParams{Tail: &tail}); err != nil || lines != min(1, max(0, tail)) {
			t.Errorf("tail %d: %d lines, %v", tail, lines, err)
		}
	}
}

// A caller that names the id of another user's run, while that run is started, does not get
// its answer.
func TestIDOfAnotherIsNotTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	began, proceed := r.hold("victim")
	r.keep()
	first := spec("victim")
	answered := make(chan error, 1)
	go func() {
		_, err := r.d.runs().start(r.as(ownerCaller), api.StartParams{Spec: first})
		answered <- err
	}()
	<-began
	second := spec("thief")
	second.ID = first.ID
	_, err := r.d.runs().start(r.as(otherCaller), api.StartParams{Spec: second})
	wantCode(t, err, api.CodeConflict)
	proceed()
	select {
	case err := <-answered:
		must(t, err)
	case <-within(t).Done():
		t.Fatal("the first one does not stop waiting")
	}
}

// A caller that uses the id of a removed run again does not get the log of that run.
func TestOldLogIsNobodyElses(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s := spec("a")
	must(t, os.MkdirAll(r.d.options.Paths.Log(s.ID), 0o700))
	_, err := r.d.runs().start(r.as(otherCaller), api.StartParams{Spec: s})
	wantCode(t, err, api.CodeConflict)
}

// Concurrent requests get no more in sum than the same requests one after the other.
func TestCountHoldsForManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Users.Runs = 3 })
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			s := spec(string(rune('a' + i)))
			err := r.d.runs().admit(r.as(ownerCaller), agent.Run{Spec: s, Owner: ownerCaller.owner})
			var known *api.Error
			if err != nil && (!errors.As(err, &known) || known.Code != api.CodeBusy) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	must(t, r.d.cache.refresh())
	if n := len(r.d.cache.all(ownerCaller.sees)); n != 3 {
		t.Errorf("%d runs, and 3 are allowed", n)
	}
}

// Ended runs use disk, so they are counted too; root's are not.
func TestKeptRunsAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Users.Kept = 2 })
	r.add("one", ownerCaller.owner, agent.StateEnded)
	must(t, r.d.cache.refresh())
	must(t, r.d.limits().checkCount(r.as(ownerCaller), spec("x")))
	r.add("two", ownerCaller.owner, agent.StateEnded)
	must(t, r.d.cache.refresh())
	wantCode(t, r.d.limits().checkCount(r.as(ownerCaller), spec("x")), api.CodeBusy)
	must(t, r.d.limits().checkCount(r.as(otherCaller), spec("x")))
	must(t, r.d.limits().checkCount(r.as(rootCaller), spec("x")))
}

// An update allows no more than a start would.
func TestUpdateStaysWithinBounds(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Users.Memory = "128M" })
	r.add("mine", ownerCaller.owner, agent.StateRunning)
	must(t, r.d.cache.refresh())
	number := func(n int64) *int64 { return &n }
	for what, u := range map[string]agent.Update{
		"memory": {MemoryBytes: number(256 << 20)}, "swap": {MemorySwapBytes: number(256 << 20)}, "any swap": {MemorySwapBytes: number(-1)},
		"memory that brings its swap along": {MemoryBytes: number(129 << 20)},
	} {
		c := r.as(ownerCaller)
		c.run, _ = r.d.cache.resolve("mine", ownerCaller.principal)
		_, err := r.d.live().update(c, api.UpdateParams{Update: u})
		if err == nil {
			t.Errorf("%s: allowed", what)
			continue
		}
		wantCode(t, err, api.CodeDenied)
	}
}

// Slots are counted for each user and in total; root is never refused, but waits.
func TestSlots(t *testing.T) {
	t.Parallel()
	s := newSlots("things", 3, 2)
	var leaves []func()
	enter := func(uid uint32) error {
		leave, err := s.enter(t.Context(), uid)
		leaves = append(leaves, leave)
		return err
	}
	must(t, enter(7))
	must(t, enter(7))
	wantCode(t, enter(7), api.CodeBusy)
	must(t, enter(0))
	entered := make(chan error, 1)
	go func() { _, err := s.enter(t.Context(), 8); entered <- err }()
	leaves[0]()
	leaves[0]() // a second call has no effect
	must(t, <-entered)
	must(t, func() error {
		leaves[1]()
		return enter(7)
	}())
}
