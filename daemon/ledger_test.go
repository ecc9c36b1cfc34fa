package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// member is ownerCaller as a member of the group that the tests' servers have.
var member = caller{principal: principal{owner: ownerCaller.owner}, groups: []uint32{50}}

// talk serves a connection of a caller on the rig, and returns the caller's end.
func (r *rig) talk(peer caller, owes *ledger) *rpc.Conn {
	r.t.Helper()
	conn, leave := r.talkUntil(peer, owes)
	r.t.Cleanup(leave)
	return conn
}

// talkUntil is talk; leave closes the connection and waits until cloved has released it.
func (r *rig) talkUntil(peer caller, owes *ledger) (_ *rpc.Conn, leave func()) {
	r.t.Helper()
	path := "@" + string(agent.NewID())
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(r.t, err)
	defer listener.Close()
	far, err := rpc.Dial(context.Background(), path)
	must(r.t, err)
	must(r.t, far.SetDeadline(time.Now().Add(patience)))
	near, err := listener.AcceptUnix()
	must(r.t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer near.Close()
		newServer(r.d, 50).talk(rpc.New(near), peer, owes)
	}()
	return far, func() { far.Close(); <-ended }
}

// large stores runs of a member, each with about as much text as one may have.
func (r *rig) large(number int) {
	r.t.Helper()
	for i := range number {
		s := spec(fmt.Sprintf("large-%02d", i))
		s.Detached, s.Command = true, []string{"true", strings.Repeat("x", 80<<10)} // lists have no environment
		must(r.t, r.d.limits().checkUser(r.as(member), s))
		_, err := r.records.enqueue(agent.Run{Spec: s, Owner: member.owner, Created: time.Unix(int64(i/3), 0), Queue: agent.QueueState{NotBefore: time.Now().Add(time.Hour)}})
		must(r.t, err)
	}
	must(r.t, r.d.cache.refresh())
}

// owing waits until cloved holds this many bytes for callers.
func (s *slots) owing(t *testing.T, enough func(sum int) bool) {
	t.Helper()
	sum := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.sum
	}
	for deadline := time.Now().Add(patience); !enough(sum()); {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are held", sum())
		}
		time.Sleep(time.Millisecond) // between two checks of a condition
	}
}

const listLine = `{"jsonrpc":"2.0","id":%d,"method":"run.list"}`

// For a user that reads no answers, cloved makes one answer for each connection and no more.
// The control is the same without the user's queue and bound.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const connections, requests = 8, 20
	r := newRig(t, nil)
	r.large(6)
	answer := r.listText(r.as(member), api.ListParams{})
	held := func(bytes *slots, turns, answers int) uint64 {
		before := heapBytes()
		var ledgers []*ledger
		for range connections {
			owes := newLedger(member.owner.UID, bytes)
			owes.writing = make(chan struct{}, turns)
			owes.making <- struct{}{} // none is made before all are requested
			ledgers = append(ledgers, owes)
			c, leave := r.talkUntil(member, owes)
			defer leave()
			lines := make([]string, requests)
			for i := range lines {
				lines[i] = fmt.Sprintf(listLine, i)
			}
			say(t, c, strings.Join(lines, "\n"))
		}
		// Once an answer is stuck the connection reads no more requests, so all are sent
		// first.
		bytes.owing(t, func(sum int) bool {
			return sum >= connections*requests*requestCost && !slices.ContainsFunc(ledgers, func(l *ledger) bool { return len(l.writing) < turns })
		})
		for _, owes := range ledgers {
			<-owes.making
		}
		bytes.owing(t, func(sum int) bool { return sum >= connections*(requests*requestCost+answers*len(answer)) })
		after := heapBytes()
		return after - min(before, after)
	}
	all := uint64(connections * requests * len(answer))
	control := held(newSlots("bytes", 0, 0), requests, requests/2)
	if control < all/2 {
		t.Fatalf("control: %d KiB of %d are held", control>>10, all>>10)
	}
	if more := held(r.d.owed, 1, 1); more > all/2 {
		t.Errorf("%d KiB are held, of the %d that were asked for; the control %d", more>>10, all>>10, control>>10)
	} else {
		t.Logf("%d KiB of %d are held; the control %d", more>>10, all>>10, control>>10)
	}
	root := r.talk(rootCaller, newLedger(0, r.d.owed))
	say(t, root, fmt.Sprintf(listLine, 1))
	if m := hear(t, root); m.Error != nil || len(m.Result) < 3*len(answer)/2 {
		t.Errorf("root's list: %d bytes, %s", len(m.Result), m.Error)
	}
}

// Root's connections that read nothing hold up to root's bound in sum, and more is refused.
// The control is the same without the bound.
func TestUnreadAnswersOfRootAreBounded(t *testing.T) {
	const connections, most = 24, 8 << 20
	r := newRig(t, nil)
	r.large(16)
	answer := r.listText(r.as(rootCaller), api.ListParams{})
	if len(answer) < 1<<19 || len(answer) > rootPageBytes+1<<10 {
		t.Fatalf("a part of root's list has %d bytes", len(answer))
	}
	ask := func(bytes *slots) (refused int) {
		fits := connections * len(answer)
		if bytes.root > 0 {
			fits = min(fits, bytes.root)
		}
		var callers []*rpc.Conn
		for range connections {
			owes := newLedger(0, bytes)
			owes.makes = r.d.rootMakes
			c, leave := r.talkUntil(rootCaller, owes)
			defer leave()
			say(t, c, fmt.Sprintf(listLine, 1))
			callers = append(callers, c)
		}
		bytes.owing(t, func(sum int) bool { return sum > fits-2*len(answer) && sum <= fits+connections*(requestCost+1<<10) })
		for _, c := range callers {
			if m := hear(t, c); m.Error != nil {
				refused++
				if code := codeOf(m); code != api.CodeBusy {
					t.Errorf("%d", code)
				}
			}
		}
		bytes.owing(t, func(sum int) bool { return sum == 0 })
		return refused
	}
	if refused := ask(newSlots("bytes", 0, 0)); refused > 0 {
		t.Fatalf("control: %d of %d are refused", refused, connections)
	}
	bounded := newSlots("bytes", 0, 0)
	bounded.root = most
	if refused := ask(bounded); refused == 0 { // not each: a late request may use space that others have released
		t.Errorf("none of %d is refused, where %d fit", connections, most/len(answer))
	}
	if r.d.owed.root != maxOwedRoot || r.d.owed.members != maxOwedRest {
		t.Errorf("cloved's own: %d, %d", r.d.owed.root, r.d.owed.members)
	}
}

// One connection has a bound, for any owner.
func TestRequestsOnAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	for _, uid := range []uint32{0, member.owner.UID} {
		bytes := newSlots("bytes", 0, 0)
		l, other := newLedger(uid, bytes), newLedger(uid, bytes)
		must(t, l.read(maxOwedOne))
		wantCode(t, l.read(1), api.CodeBusy)
		must(t, other.read(maxOwedOne)) // control: it is not the user's bound
		l.drop()
		must(t, l.read(1))
		l.close()
		other.close()
		bytes.owing(t, func(sum int) bool { return sum == 0 })
	}
}

// The users together have a bound, which root's requests do not count for.
func TestBytesOfAllUsersAreBounded(t *testing.T) {
	t.Parallel()
	s := newSlots("bytes", 0, 10)
	s.root, s.members = 40, 25
	must(t, s.take(t.Context(), 0, 40))
	wantCode(t, s.take(t.Context(), 0, 1), api.CodeBusy)
	for uid, n := range map[uint32]int{1: 10, 2: 10} {
		must(t, s.take(t.Context(), uid, n))
	}
	wantCode(t, s.take(t.Context(), 3, 6), api.CodeBusy)
	must(t, s.take(t.Context(), 3, 5))
	s.give(1, 10)
	must(t, s.take(t.Context(), 3, 5))
	s.give(0, 40)
	must(t, s.take(t.Context(), 0, 1))
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Memory held by a user's requests is counted over all connections, until they are answered or
// their connection ends; root is never refused.
func TestRequestsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	long := r.add("long", member.owner, agent.StateRunning)
	must(t, r.d.cache.refresh())
	bytes := newSlots("bytes of requests and unread answers", 0, 40*requestCost)
	waits := func(n int) string {
		calls := make([]string, n)
		for i := range calls {
			calls[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"run.wait","params":{"run":%q}}`, i, long.Spec.ID)
		}
		return "[" + strings.Join(calls, ",") + "]"
	}
	first, second := r.talk(member, newLedger(member.owner.UID, bytes)), r.talk(member, newLedger(member.owner.UID, bytes))
	say(t, first, waits(30))
	bytes.owing(t, func(sum int) bool { return sum >= 30*requestCost })
	say(t, second, waits(12))
	if code := codeOf(hear(t, second)); code != api.CodeBusy {
		t.Errorf("42 requests where 40 fit: %d", code)
	}
	// cloved closes the connection in the middle of the request.
	_, _ = second.Write([]byte(`{"jsonrpc":"2.0","id":"x","method":"run.start","params":"` + strings.Repeat("x", 20*requestCost) + `"}`))
	if code := codeOf(hear(t, second)); code != api.CodeBusy {
		t.Errorf("a line where there is no space: %d", code)
	}
	root := r.talk(rootCaller, newLedger(0, bytes))
	say(t, root, waits(50), ping)
	if m := hear(t, root); m.Error != nil || string(m.ID) != `"ping"` {
		t.Errorf("root: %+v", m)
	}
	root.Close()
	first.Close()
	bytes.owing(t, func(sum int) bool { return sum == 0 })
	third := r.talk(member, newLedger(member.owner.UID, bytes))
	say(t, third, waits(30))
	bytes.owing(t, func(sum int) bool { return sum >= 30*requestCost })
	r.end(string(long.Spec.ID), 0)
	must(t, r.d.cache.refresh()) // no reconciler refreshes the cache here
	if _, err := third.Line(rpc.MaxLine); err != nil {
		t.Error(err)
	}
	bytes.owing(t, func(sum int) bool { return sum == 0 })
}

// The answers to one batch have a bound in sum; each alone would be sent.
func TestAnswersToABatchAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.large(1)
	c := r.talk(member, newLedger(member.owner.UID, r.d.owed))
	calls := make([]string, 20)
	for i := range calls {
		calls[i] = fmt.Sprintf(listLine, i)
	}
	say(t, c, "["+strings.Join(calls, ",")+"]")
	line, err := c.Line(rpc.MaxLine)
	must(t, err)
	var answers []rpc.Message
	must(t, json.Unmarshal(line, &answers))
	given, refused := 0, 0
	for _, m := range answers {
		ofTheSet(t, m)
		switch codeOf(m) {
		case 0:
			given++
		case api.CodeTooLarge:
			refused++
		}
	}
	if len(line) > maxBatched+64<<10 || given < 2 || given+refused != len(calls) {
		t.Errorf("%d bytes, %d given, %d refused", len(line), given, refused)
	}
	r.d.owed.owing(t, func(sum int) bool { return sum == 0 })
}

// A user's runs may have less text than root's, beside command and environment; more is refused at once.
func TestTextOfAUsersRunIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s := spec("a")
	s.Env = []string{"X=" + strings.Repeat("x", 120<<10), "Y=" + strings.Repeat("y", 120<<10), "Z=" + strings.Repeat("z", 20<<10)}
	must(t, r.d.limits().checkUser(r.as(member), s))
	for i := range 300 {
		s.Egress.Rules = append(s.Egress.Rules, agent.EgressRule{Target: strings.Repeat("x", 500) + fmt.Sprint(i), Source: strings.Repeat("s", 500)})
	}
	wantCode(t, r.d.limits().checkUser(r.as(member), s), api.CodeDenied)
}

// What a user's runs keep of long commands is bounded in all; short ones, others and root's go on.
func TestLongCommandsOfAUserAreBoundedTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	long, short := spec("long"), spec("short")
	long.Command = append([]string{"true"}, slices.Repeat([]string{strings.Repeat("x", 100<<10)}, 20)...)
	taken := 0
	for err := error(nil); err == nil && taken < 100; taken++ {
		s := long
		s.ID, s.Name = agent.NewID(), fmt.Sprintf("long-%02d", taken)
		if err = r.d.runs().admit(r.as(member), agent.Run{Spec: s, Owner: member.owner}); err != nil {
			wantCode(t, err, api.CodeBusy)
			wantRule(t, err, api.RuleUser+"words")
			break
		}
	}
	if most := maxUserWords / wordBytes(long); taken != most || most < 2 {
		t.Errorf("%d were taken, want %d", taken, most)
	}
	must(t, r.d.limits().checkCount(r.as(member), short))
	must(t, r.d.limits().checkCount(r.as(otherCaller), long))
	must(t, r.d.limits().checkCount(r.as(rootCaller), long))
}
