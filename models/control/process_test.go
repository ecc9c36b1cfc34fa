package control

import (
	"fmt"
	"os"
	"testing"
	"time"

	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models/link"
)

// What a clove-upstream that ends has not reported counts as used in full, once. The next
// call gets another process.
func TestALostUpstream(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	front.begin(ask(1, run, "small"))
	front.begin(ask(2, run, "small"))
	up := within(t, r.upstreams)
	first, _ := within(t, up.up), within(t, up.up)
	up.send(link.FromUpstream{Done: &link.Done{Number: first.Call.Number, Status: 200, Sent: true}})
	if used := within(t, r.ledger.settled); used[budget.ModelCalls] != 1 || used[budget.TokensIn] != 0 {
		t.Errorf("%v", used)
	}
	up.conn.Close()
	if used := within(t, r.ledger.settled); used[budget.TokensIn] != 200 || used[budget.TokensOut] != 100 || used[budget.CostMicros] != 2000 {
		t.Errorf("%v", used)
	}
	if m := front.begin(ask(3, run, "small")); m.Go == nil {
		t.Errorf("%+v", m)
	}
	within(t, r.upstreams)
	if _, open := r.ledger.reservations(); open != 1 || len(r.ledger.settled) != 0 {
		t.Errorf("%d are open, %d were settled more", open, len(r.ledger.settled))
	}
}

// A new configuration needs a new process, as it has the keys. The old one ends behind its
// last call, which settles what it reports; the calls of the new one go on.
func TestAReload(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	front.begin(ask(1, run, "small"))
	old := within(t, r.upstreams)
	call := within(t, old.up).Call
	r.load(file)
	front.begin(ask(2, run, "small"))
	next := within(t, r.upstreams)
	second := within(t, next.up).Call
	old.send(link.FromUpstream{Done: &link.Done{Number: second.Number, Status: 200}}) // not its own
	old.send(link.FromUpstream{Done: &link.Done{Number: call.Number, Status: 200, Sent: true}})
	if used := within(t, r.ledger.settled); fmt.Sprint(used) != "map[model_calls:1]" {
		t.Errorf("%v", used)
	}
	if m, open := <-old.front; open {
		t.Errorf("%+v", m)
	}
	next.send(link.FromUpstream{Done: &link.Done{Number: second.Number, Status: 500, Sent: true}})
	if used := within(t, r.ledger.settled); fmt.Sprint(used) != "map[]" || len(r.ledger.settled) != 0 {
		t.Errorf("%v", used)
	}
}

// What models.yaml says of times reaches the process that enforces it.
func TestTimeoutsReachTheProvidersSide(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.load(`
providers:
  p: {family: openai, url: "https://p.example/v1", users: ["*"], timeouts: {first: 7s, between: 3s, total: 90s}}
  q: {family: openai, url: "https://q.example/v1", users: ["*"]}
models: {small: {targets: [{provider: p}]}}
`)
	run, front := r.started()
	front.begin(ask(1, run, "small"))
	setup := within(t, r.upstreams).setup
	if p := setup.Providers["p"]; p.First != 7*time.Second || p.Pause != 3*time.Second || p.Total != 90*time.Second {
		t.Errorf("%+v", p)
	}
	if q := setup.Providers["q"]; q.First != 5*time.Minute || q.Pause != 2*time.Minute || q.Total != time.Hour {
		t.Errorf("%+v", q)
	}
}

// Connections lead to configured providers only.
func TestDials(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	front.begin(ask(1, run, "small"))
	up := within(t, r.upstreams)
	within(t, up.up)
	for number, name := range []string{"", "other", "p.example", "127.0.0.1:22"} {
		up.send(link.FromUpstream{Dial: &link.Dial{Number: uint64(number), Provider: name}})
		if m := within(t, up.up); m.Socket == nil || m.Socket.Error != "no such provider" || m.Socket.Number != uint64(number) {
			t.Errorf("%q: %+v", name, m)
		}
	}
	before := up.files.Load()
	up.send(link.FromUpstream{Dial: &link.Dial{Number: 9, Provider: "echo"}})
	own := within(t, r.fronts)
	if script, client := within(t, own.front), within(t, own.front); script.Script == nil || !client.Client {
		t.Errorf("%+v, %+v", script, client)
	}
	if m := within(t, up.up); m.Socket == nil || m.Socket.Error != "" || up.files.Load() != before+1 {
		t.Errorf("control: %+v", m)
	}
}

// A clove-models that ends is replaced, gets the listeners of its runs, and its calls are
// cancelled.
func TestALostFront(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	front.begin(ask(1, run, "small"))
	up := within(t, r.upstreams)
	call := within(t, up.up).Call
	front.conn.Close()
	next := within(t, r.fronts)
	if m := within(t, next.front); m.Serve == nil || m.Serve.Run != run.Spec.ID || next.files.Load() != 1 {
		t.Errorf("%+v", m)
	}
	if m := within(t, up.up); m.Cancel != call.Number {
		t.Errorf("%+v", m)
	}
}

// One that ends again and again is not started without a pause. The control: without a pause
// it is started at once, in one of several trials, because a machine may be slow.
func TestAFrontThatEndsAgainAndAgain(t *testing.T) {
	t.Parallel()
	const starts, pause = 5, 100 * time.Millisecond
	took := func(pause time.Duration) time.Duration {
		r := newRig(t)
		r.Control.fronts.pause = pause
		begin := time.Now()
		r.serve(1000)
		for range starts {
			front := within(t, r.fronts)
			within(t, front.front) // it is ready, and serves
			front.conn.Close()
		}
		return time.Since(begin)
	}
	least := (starts - 1) * pause
	if got := took(pause); got < least {
		t.Errorf("%d starts with a pause of %s in %s", starts, pause, got)
	}
	for range 50 {
		if took(0) < least {
			return
		}
	}
	t.Errorf("control: %d starts without a pause never take less than %s", starts, least)
}

// A process that takes its time to start delays no call of others.
func TestAStartDelaysNoOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	front.begin(ask(1, run, "small"))
	up := within(t, r.upstreams)
	within(t, up.up)
	start, starts := r.launcher.Spawn, make(chan struct{})
	begun := make(chan struct{}, 1)
	r.launcher.Spawn = func(executable string, id uint32, journal *os.File, files ...*os.File) (keep.Child, error) {
		begun <- struct{}{}
		<-starts
		return start(executable, id, journal, files...)
	}
	served := make(chan struct{})
	go func() { r.serve(2000); close(served) }()
	within(t, begun)
	if m := front.begin(ask(2, run, "small")); m.Go == nil {
		t.Errorf("%+v", m.Refuse)
	}
	close(starts)
	within(t, served)
}

// Calls that wait hold nothing of the budget, those of another agent are not behind all of
// one, and one that is cancelled never begins.
func TestCallsWaitInTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	busy, front := r.started()
	other := r.serve(1000)
	within(t, front.front)
	if m := front.begin(ask(1, busy, "queued")); m.Go == nil {
		t.Fatalf("%+v", m.Refuse)
	}
	up := within(t, r.upstreams)
	number := within(t, up.up).Call.Number
	for i := range 6 {
		b := ask(uint64(2+i), busy, "queued")
		front.send(link.FromFront{Begin: &b})
		r.waitsAt(ofProvider, "narrow", i+1)
	}
	b := ask(100, other, "queued")
	front.send(link.FromFront{Begin: &b})
	r.waitsAt(ofProvider, "narrow", 7)
	if _, open := r.ledger.reservations(); open != 1 {
		t.Errorf("%d reservations", open)
	}
	front.send(link.FromFront{Cancel: 2})
	if m := within(t, front.front); m.Refuse == nil || m.Refuse.Number != 2 || m.Refuse.Reason != link.ReasonBusy {
		t.Errorf("%+v", m)
	}
	var order []uint64
	for range 6 {
		up.send(link.FromUpstream{Done: &link.Done{Number: number, Status: 200, Sent: true}})
		m := within(t, front.front)
		if m.Go == nil {
			t.Fatalf("%+v, %+v", m, m.Refuse)
		}
		order = append(order, m.Go.Number)
		number = within(t, up.up).Call.Number
	}
	if order[0] != 100 && order[1] != 100 || order[5] != 7 {
		t.Errorf("%v: the other agent waited for more than one call", order)
	}
}
