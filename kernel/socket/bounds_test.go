package socket

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/channel"
)

// connected returns how many connections are served, and makes each look as if it had been
// silent for a time.
func (s *Server) silent(span time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		c.used = c.used.Add(-span)
	}
	return len(s.connections)
}

// fill makes MaxConnections connections that have each had an answer.
func (r *rig) fill() []*peer {
	r.t.Helper()
	all := make([]*peer, MaxConnections)
	for i := range all {
		all[i] = r.dial()
		r.works(all[i])
	}
	return all
}

// One connection too many is told so and ended while all others are in use. It takes the
// place of the one that was silent longest, unless that waits for something.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all := r.fill()
	r.server.silent(-time.Hour) // none looks silent, however long this has taken
	busy := r.dial()
	busy.wantError("null", api.CodeBusy)
	busy.wantEnd()
	r.server.silent(time.Hour)
	must(t, all[0].send(request(1, agents.AgentListen.Name, "{}")))
	all[0].wantResult("1", "{}")
	all[1].ask(2)
	waits := r.call()
	for _, p := range all[2:] {
		r.works(p)
	}
	if n := r.server.silent(idleTime); n != MaxConnections {
		t.Errorf("%d connections", n)
	}
	r.works(all[2]) // it is in use again
	r.works(r.dial())
	all[3].wantEnd()
	r.notify("test.note")
	if m := all[0].next(); m.Method != "test.note" {
		t.Errorf("%+v", m)
	}
	r.answer(waits.Number, "{}")
	all[1].wantResult("2", "{}")
	for _, p := range append(all[:3:3], all[4:]...) {
		r.works(p)
	}
}

// Connections that end free their places.
func TestEndedConnectionsFreeTheirPlaces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 3 {
		for _, p := range r.fill() {
			must(t, p.CloseWrite())
			p.wantEnd()
		}
	}
	if n := r.server.silent(0); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// An agent has channel.MaxCalls calls in flight, whatever connections they are on. The next
// one is answered with busy at once, and there is room again with each answer.
func TestCallsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two := r.dial(), r.dial()
	var calls []channel.Call
	for i := range channel.MaxCalls {
		[]*peer{one, two}[i%2].ask(i)
		calls = append(calls, r.call())
	}
	for _, p := range []*peer{one, two} {
		p.ask(1000)
		p.wantError("1000", api.CodeBusy)
	}
	r.wantNothing()
	r.answer(calls[0].Number, "{}")
	one.wantResult("0", "{}")
	two.ask(1001)
	r.answer(r.call().Number, "{}")
	two.wantResult("1001", "{}")
	for i, c := range calls[1:] {
		r.answer(c.Number, fmt.Sprintf(`{"n":%d}`, i+1))
		[]*peer{one, two}[(i+1)%2].wantResult(fmt.Sprint(i+1), fmt.Sprintf(`{"n":%d}`, i+1))
	}
	seen := map[uint64]bool{}
	for _, c := range calls {
		if seen[c.Number] {
			t.Errorf("number %d repeats", c.Number)
		}
		seen[c.Number] = true
	}
}

// When the process that answers calls has gone, each call in flight is answered with that, and has no
// second answer. Calls after it are passed on.
func TestCallsInFlightAreAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two := r.dial(), r.dial()
	one.ask(1)
	late := r.call()
	two.ask(2)
	r.call()
	must(t, r.super.Send(channel.ToGate{Away: api.Failure(api.CodeBusy, "", "it is away")}))
	one.wantError("1", api.CodeBusy)
	two.wantError("2", api.CodeBusy)
	r.answer(late.Number, "{}")
	r.works(one)
	r.works(two)
}

// A client that does not read is cut off when too much waits for it. Meanwhile the others
// get their answers.
func TestASlowReaderHoldsNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow, other := r.dial(), r.dial()
	large := `{"text":"` + strings.Repeat("x", 60<<10) + `"}`
	const calls = 60 // 3.6 MB: more than its socket's buffer and maxWaiting hold
	for i := range calls {
		if slow.send(request(i, agents.AgentGet.Name, "{}")) != nil {
			break // it was cut off
		}
		m := r.next()
		if m.Call == nil {
			break // it was cut off, and the call before was cancelled
		}
		r.answer(m.Call.Number, large)
		r.works(other)
	}
	if n := slow.wantEnd(); n == 0 || n >= calls*int64(len(large)) {
		t.Errorf("%d bytes", n)
	}
	r.works(other)
	for deadline := time.Now().Add(patience); r.server.silent(0) != 1; {
		if time.Now().After(deadline) {
			t.Fatal("its place is not free")
		}
		r.works(other)
	}
}

// Notifications wait for the first connection that listens, in order. If more come than
// wait, the oldest go, and the first thing that a listener reads is how many.
func TestNotificationsWait(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, maxQueued, maxQueued + 44} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.dial()
			for i := range count {
				r.notify(fmt.Sprintf("test.note%d", i))
			}
			r.works(p) // behind all of them, and it reads none
			must(t, p.send(request(1, agents.AgentListen.Name, "{}")))
			p.wantResult("1", "{}")
			lost := max(0, count-maxQueued)
			if lost > 0 {
				if m := p.next(); m.Method != api.NoteLost || string(m.Params) != fmt.Sprintf(`{"lost":%d}`, lost) {
					t.Errorf("%s %s", m.Method, m.Params)
				}
			}
			for i := lost; i < count; i++ {
				if m := p.next(); m.Method != fmt.Sprintf("test.note%d", i) || m.ID != nil {
					t.Fatalf("%s, want number %d", m.Method, i)
				}
			}
			r.notify("test.last")
			if m := p.next(); m.Method != "test.last" {
				t.Errorf("%s", m.Method)
			}
		})
	}
}

// Notifications of one kind about the same become one with a count, and push out no others. Without a
// key each is its own.
func TestRepeatedNotificationsAreOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.dial()
	r.notify("test.first")
	for i := range 2 * maxQueued {
		n := api.Notice{Method: "test.note", Key: fmt.Sprint(i % 2), Params: fmt.Appendf(nil, `{"number":%d}`, i)}
		must(t, r.super.Send(channel.ToGate{Notice: &channel.Notice{Notice: n}}))
	}
	r.works(p)
	must(t, p.send(request(1, agents.AgentListen.Name, "{}")))
	p.wantResult("1", "{}")
	want := []string{"test.first {}", fmt.Sprintf(`test.note {"count":%d,"number":%d}`, maxQueued, 2*maxQueued-2), fmt.Sprintf(`test.note {"count":%d,"number":%d}`, maxQueued, 2*maxQueued-1)}
	for _, text := range want {
		if m := p.next(); m.Method+" "+string(m.Params) != text {
			t.Errorf("%s %s, want %s", m.Method, m.Params, text)
		}
	}
}

// Every connection that listens gets a notification, and none that does not. When the last
// listener has gone, notifications wait again.
func TestAllListenersAreNotified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two, silent := r.dial(), r.dial(), r.dial()
	for _, p := range []*peer{one, two} {
		must(t, p.send(request(1, agents.AgentListen.Name, "{}")))
		p.wantResult("1", "{}")
	}
	r.notify("test.first")
	for _, p := range []*peer{one, two} {
		if m := p.next(); m.Method != "test.first" {
			t.Errorf("%s", m.Method)
		}
		must(t, p.CloseWrite())
		p.wantEnd()
	}
	r.notify("test.second")
	r.works(silent)
	must(t, silent.send(request(2, agents.AgentListen.Name, "{}")))
	silent.wantResult("2", "{}")
	if m := silent.next(); m.Method != "test.second" {
		t.Errorf("%s", m.Method)
	}
}

// Notifications come behind the answer to agent.listen, and those that waited before newer
// ones.
func TestListenKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for range 50 {
		r := newRig(t)
		p := r.dial()
		const count = 20
		sent := make(chan error, 1)
		go func() {
			for i := range count {
				n := channel.Notice{Notice: api.Notice{Method: "test.note", Params: fmt.Appendf(nil, "%d", i)}}
				if err := r.super.Send(channel.ToGate{Notice: &n}); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		must(t, p.send(request(1, agents.AgentListen.Name, "{}")))
		p.wantResult("1", "{}")
		for i := range count {
			if m := p.next(); string(m.Params) != fmt.Sprint(i) {
				t.Fatalf("%s came as number %d", m.Params, i)
			}
		}
		must(t, <-sent)
	}
}
