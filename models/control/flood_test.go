package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// fewPlaces are those of a clove-models in these tests.
const fewPlaces = 64

// stuck returns when a number does not grow any more, and the most goroutines that there were.
func stuck(t *testing.T, number *atomic.Uint64) (goroutines int) {
	t.Helper()
	last, same := number.Load(), 0
	for deadline := time.Now().Add(4 * soon); same < 300; time.Sleep(time.Millisecond) {
		goroutines = max(goroutines, runtime.NumGoroutine())
		same++
		if now := number.Load(); now != last || now == 0 {
			last, same = now, 0
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d, and it grows; %d goroutines", last, goroutines)
		}
	}
	return goroutines
}

// A clove-models that was taken over asks without end, and reads no answer. What it takes of
// root's is bounded, and it is read no further. When it reads again, each call has its
// answer. The test is alone in its process at that time, as it counts goroutines.
func TestAFloodWhoseAnswersAreNotRead(t *testing.T) {
	r := newRig(t)
	r.Control.fronts.places = fewPlaces
	run, front := r.started()
	before := runtime.NumGoroutine()
	var sent atomic.Uint64
	stop, asked := make(chan struct{}), make(chan uint64)
	go func() {
		for {
			select {
			case <-stop:
				asked <- sent.Load()
				return
			default:
			}
			b := ask(sent.Add(1), run, "none")
			front.send(link.FromFront{Begin: &b})
		}
	}()
	if n := stuck(t, &sent) - before; n > fewPlaces+16 {
		t.Errorf("%d goroutines for %d places", n, fewPlaces)
	}
	close(stop)
	answered, reasons, flood := map[uint64]bool{}, map[link.Reason]int{}, uint64(0)
	for flood == 0 || len(answered) < int(flood) {
		var m link.ToFront
		select {
		case flood = <-asked:
			continue
		case m = <-front.front:
		case <-time.After(soon):
			t.Fatal("an answer is missing")
		}
		if m.Refuse == nil || answered[m.Refuse.Number] {
			t.Fatalf("%+v, %+v", m, m.Refuse)
		}
		answered[m.Refuse.Number] = true
		reasons[m.Refuse.Reason]++
	}
	if reasons[link.ReasonUnknown]+reasons[link.ReasonBusy] != int(flood) {
		t.Errorf("%v", reasons)
	}
	if m := front.begin(ask(flood+1, run, "small")); m.Go == nil {
		t.Errorf("control: %+v", m.Refuse)
	}
}

// The call that is one too many in flight is refused at once. One that is cancelled makes room.
func TestCallsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Control.fronts.places = fewPlaces
	run, front := r.started()
	if m := front.begin(ask(1, run, "queued")); m.Go == nil {
		t.Fatalf("%+v", m.Refuse)
	}
	for i := range fewPlaces - 1 {
		b := ask(uint64(2+i), run, "queued")
		front.send(link.FromFront{Begin: &b})
	}
	r.waitsAt(ofProvider, "narrow", fewPlaces-1)
	last := ask(fewPlaces+1, run, "small") // whose provider has room
	if m := front.begin(last); m.Refuse == nil || m.Refuse.Reason != link.ReasonBusy || m.Refuse.Number != last.Number || m.Refuse.After == 0 {
		t.Fatalf("%+v", m)
	}
	front.send(link.FromFront{Cancel: 2})
	if m := within(t, front.front); m.Refuse == nil || m.Refuse.Number != 2 {
		t.Fatalf("%+v", m)
	}
	if m := front.begin(last); m.Go == nil {
		t.Errorf("%+v", m.Refuse)
	}
	if all, _ := r.ledger.reservations(); len(all) != 2 {
		t.Errorf("%d reservations: calls that wait hold some", len(all))
	}
}

// Lists are bounded, too. The ledger holds those up that are made.
func TestAFloodOfLists(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	list := func(number uint64) {
		front.send(link.FromFront{List: &link.List{Number: number, Run: run.Spec.ID}})
	}
	r.ledger.mu.Lock()
	for i := range maxLists + 100 {
		list(uint64(1 + i))
	}
	for range 100 {
		if m := within(t, front.front); m.Refuse == nil || m.Refuse.Reason != link.ReasonBusy || m.Refuse.Number <= maxLists {
			t.Fatalf("%+v", m)
		}
	}
	r.ledger.mu.Unlock()
	for range maxLists {
		if m := within(t, front.front); m.Names == nil || m.Names.Number > maxLists || len(m.Names.Names) == 0 {
			t.Fatalf("%+v", m)
		}
	}
}

// What is held of a call is short, however long the message was.
func TestLongNamesAreNotHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	long := strings.Repeat("a", link.MaxName+1)
	model, name := ask(1, run, long), ask(1, run, "small")
	name.Run = agent.ID(long)
	for _, b := range []link.Begin{model, name} {
		if m := front.begin(b); m.Refuse == nil || m.Refuse.Reason != link.ReasonFailed || len(m.Refuse.Message) > 100 {
			t.Errorf("%+v", m)
		}
	}
	if m := front.begin(ask(1, run, long[1:])); m.Refuse == nil || m.Refuse.Reason != link.ReasonUnknown {
		t.Errorf("control: %+v", m)
	}
}

// again serves a run once more, as its supervisor does when it has lost its connection.
func (r *rig) again(run agent.Run) *served {
	r.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	defer listener.Close()
	copied, err := listener.(*net.TCPListener).File()
	if err == nil {
		_, err = r.Serve(context.Background(), run, copied)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return r.serving(run)
}

func (r *rig) serving(run agent.Run) *served {
	return r.runs.get(run.Spec.ID)
}

// A supervisor that comes again is served anew, before the end of its old connection is
// noticed. That end takes nothing of the new one's.
func TestTheEndOfAnOldServing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	old := r.serving(run)
	current := r.again(run)
	if m := within(t, front.front); m.Serve == nil || m.Serve.Run != run.Spec.ID {
		t.Fatalf("%+v", m)
	}
	r.leave(old)
	if m := front.begin(ask(1, run, "small")); m.Go == nil {
		t.Fatalf("%+v, %+v", m, m.Refuse)
	}
	if !closed(old.listener) || closed(current.listener) {
		t.Errorf("closed are the old listener: %t, and the new one: %t", closed(old.listener), closed(current.listener))
	}
	r.leave(current)
	if m := within(t, front.front); m.Leave != run.Spec.ID {
		t.Errorf("control: %+v", m)
	}
	if m := front.begin(ask(2, run, "small")); m.Refuse == nil {
		t.Errorf("control: %+v", m)
	}
}

func closed(file *os.File) bool {
	_, err := file.Stat()
	return err != nil
}

// A reload changes how many calls run at once also for those that wait already: a higher
// limit lets them through at the next call, and a lower one holds them back.
func TestAReloadChangesLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	limit := func(calls string) {
		r.load(strings.Replace(file, "limits: {concurrency: 1}", "limits: {concurrency: "+calls+"}", 1))
	}
	wait := func(number uint64, waiting int) {
		t.Helper()
		b := ask(number, run, "queued")
		front.send(link.FromFront{Begin: &b})
		r.waitsAt(ofProvider, "narrow", waiting)
	}
	goes := func(number uint64) {
		t.Helper()
		if m := within(t, front.front); m.Go == nil || m.Go.Number != number {
			t.Fatalf("%+v, not call %d", m, number)
		}
	}
	if m := front.begin(ask(1, run, "queued")); m.Go == nil {
		t.Fatalf("%+v", m.Refuse)
	}
	old := within(t, r.upstreams)
	first := within(t, old.up).Call
	wait(2, 1)
	wait(3, 2)
	limit("2")
	wait(4, 2)
	goes(2)
	limit("1")
	wait(5, 3)
	old.send(link.FromUpstream{Done: &link.Done{Number: first.Number, Status: 200, Sent: true}})
	within(t, r.ledger.settled)
	r.waitsAt(ofProvider, "narrow", 3) // call 2 alone is what may run
	up := within(t, r.upstreams)
	second := within(t, up.up).Call
	up.send(link.FromUpstream{Done: &link.Done{Number: second.Number, Status: 200, Sent: true}})
	goes(3)
}

// A clove-models cancels the calls of its own owner only: the numbers of others' calls mean
// nothing to it.
func TestNumbersOfAnotherOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	foreign := r.serve(2000)
	other := within(t, r.fronts)
	within(t, other.front)
	if m := front.begin(ask(1, run, "small")); m.Go == nil {
		t.Fatalf("%+v", m.Refuse)
	}
	up := within(t, r.upstreams)
	call := within(t, up.up).Call
	for _, number := range []uint64{1, call.Number, 0, 1<<64 - 1} {
		other.send(link.FromFront{Cancel: number})
	}
	if m := other.begin(ask(1, foreign, "small")); m.Go == nil { // behind them; the number is its own
		t.Fatalf("%+v", m.Refuse)
	}
	second := within(t, up.up)
	if second.Call == nil || second.Call.Owner != 2000 || call.Owner != 1000 {
		t.Fatalf("%+v", second)
	}
	front.send(link.FromFront{Cancel: 1})
	if m := within(t, up.up); m.Cancel != call.Number {
		t.Errorf("control: %+v", m)
	}
}

// What a call is said to take is reserved, and what it took is paid: a clove-models that
// claims less pays no less.
func TestClaimsOfLess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	b := ask(1, run, "small")
	b.In, b.Out, b.N = 0, 1, 1
	if m := front.begin(b); m.Go == nil {
		t.Fatalf("%+v", m.Refuse)
	}
	up := within(t, r.upstreams)
	call := within(t, up.up).Call
	up.send(link.FromUpstream{Done: &link.Done{Number: call.Number, Status: 200, Sent: true, Usage: models.Usage{In: 5000, Out: 9000}}})
	want := budget.Amounts{budget.ModelCalls: 1, budget.TokensIn: 5000, budget.TokensOut: 9000, budget.CostMicros: 5000 + 90_000}
	if used := within(t, r.ledger.settled); fmt.Sprint(used) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", used, want)
	}
	if all, _ := r.ledger.reservations(); all[0].amounts[budget.TokensOut] != 1 || call.MostOut != 1 {
		t.Errorf("control: %+v, %+v", all, call)
	}
}
