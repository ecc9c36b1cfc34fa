package control

import (
	"testing"
	"time"

	"clove.run/clove/models/link"
)

// narrowFile has a provider with one place, and a model with two.
const narrowFile = `
providers:
  p: {family: openai, url: "https://p.example/v1", users: ["*"], limits: {concurrency: 1}}
models:
  small: {targets: [{provider: p, model: theirs}], limits: {concurrency: 2}}
`

// waitsFor begins a call that waits.
func (s *several) waitsFor(b link.Begin, kind, name string, calls int) {
	s.t.Helper()
	s.front.send(link.FromFront{Begin: &b})
	s.waitsAt(kind, name, calls)
}

// One agent's calls that wait at both the model's and the provider's limit delay another's by one
// call: by that which runs.
func TestAnotherAgentWaitsForOneCall(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, narrowFile)
	other := s.serve(1000)
	within(t, s.front.front)
	s.begin()
	s.waitsFor(ask(2, s.run, "small"), ofProvider, "p", 1)
	for i := range 5 {
		s.waitsFor(ask(uint64(3+i), s.run, "small"), ofModel, "small", i+1)
	}
	s.waitsFor(ask(100, other, "small"), ofModel, "small", 6)
	s.ends(answered)
	if m := within(t, s.front.front); m.Go == nil || m.Go.Number != 100 {
		t.Errorf("%+v: the other agent's call is not the next", m.Go)
	}
}

// A call that waits for too long is refused, and has no place and no reservation. The control is
// the next one, which need not wait.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	s := &several{rig: newRig(t)}
	s.load(narrowFile)
	s.desk.limits.maxWait = 10 * time.Millisecond
	s.run, s.front = s.started()
	s.begin()
	for range 3 {
		s.number++
		if m := s.front.begin(ask(s.number, s.run, "small")); m.Refuse == nil || m.Refuse.Reason != link.ReasonBusy || m.Refuse.Message != errWaited.Error() {
			t.Errorf("%+v", m.Refuse)
		}
		s.waitsAt(ofProvider, "p", 0)
	}
	if _, open := s.ledger.reservations(); open != 1 {
		t.Errorf("%d are open", open)
	}
	s.ends(answered)
	within(t, s.ledger.settled)
	s.begin()
}

// A run's calls that wait are shown to it with their position, and no other's. How long it takes
// is known when a call has ended.
func TestCallsThatWaitAreShown(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, narrowFile)
	other := s.serve(1000)
	within(t, s.front.front)
	if all := s.Waiting(s.run.Spec.ID); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	s.begin()
	s.waitsFor(ask(2, s.run, "small"), ofProvider, "p", 1)
	s.waitsFor(ask(3, s.run, "small"), ofModel, "small", 1)
	s.waitsFor(ask(4, s.run, "small"), ofModel, "small", 2)
	all := s.Waiting(s.run.Spec.ID)
	if len(all) != 3 || all[0].Limit != ofProvider || all[0].Position != 1 || all[0].Model != "small" || all[0].ExpectedMS != nil || all[0].WaitedMS < all[2].WaitedMS {
		t.Errorf("%+v", all)
	}
	if all[1].Limit != ofModel || all[1].Position+all[2].Position != 3 {
		t.Errorf("%+v", all)
	}
	if others := s.Waiting(other.Spec.ID); len(others) != 0 {
		t.Errorf("another's: %+v", others)
	}
	s.ends(answered)
	if m := within(t, s.front.front); m.Go == nil || m.Go.Number != 2 {
		t.Fatalf("%+v", m)
	}
	if all := s.Waiting(s.run.Spec.ID); len(all) != 2 || all[0].ExpectedMS == nil || all[0].Limit != ofProvider {
		t.Errorf("%+v", all)
	}
}
