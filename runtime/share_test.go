package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/kernel/channel"
)

// heldCall is a call that waits for the test's answer.
type heldCall struct {
	ctx    context.Context
	method string
	answer chan<- error
}

// answers is a Kernel that has the test answer each call. It does not end a call that is
// cancelled: that is the answerer's to decide.
type answers chan heldCall

func (a answers) Attach(context.Context, agent.Run, func(api.Standing)) error { return nil }

func (a answers) Call(ctx context.Context, _ agent.ID, method string, params json.RawMessage) (json.RawMessage, error) {
	answer := make(chan error)
	a <- heldCall{ctx, method, answer}
	return params, <-answer
}

func (a answers) Meter(context.Context, agent.ID, int, map[string]int64) error { return nil }

// newShare is a share whose gate is the test.
func newShare(t *testing.T) (*share, answers, *channel.Conn) {
	t.Helper()
	super, file, err := channel.Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	file.Close()
	if err != nil {
		t.Fatal(err)
	}
	own, err := passfd.New(fd)
	if err != nil {
		t.Fatal(err)
	}
	gate, kernel := channel.New(own), make(answers, 2*channel.MaxCalls)
	s := &share{kernel: kernel, ctx: context.Background(), calls: super, stands: make(chan api.Standing, 1), refusals: newRefusals(), flying: map[uint64]context.CancelFunc{}}
	ended := make(chan struct{})
	go func() { s.serve(); close(ended) }()
	t.Cleanup(func() { gate.Close(); <-ended; super.Close() })
	return s, kernel, gate
}

func (s *share) inFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.flying)
}

func send(t *testing.T, gate *channel.Conn, m channel.FromGate) {
	t.Helper()
	if err := gate.Send(m); err != nil {
		t.Fatal(err)
	}
}

func call(number uint64, params string) channel.FromGate {
	return channel.FromGate{Call: &channel.Call{Number: number, Method: agents.AgentGet.Name, Params: json.RawMessage(params)}}
}

// wantAnswer receives the answer to a call; code 0 is a result.
func wantAnswer(t *testing.T, gate *channel.Conn, number uint64, code api.Code) {
	t.Helper()
	var m channel.ToGate
	if err := gate.Receive(&m); err != nil || m.Answer == nil {
		t.Fatalf("%+v, %v", m, err)
	}
	got := api.Code(0)
	if m.Answer.Error != nil {
		got = m.Answer.Error.Code
	}
	if m.Answer.Number != number || got != code || (m.Answer.Result == nil) != (code != 0) {
		t.Errorf("call %d has %d, %+v; want call %d, code %d", m.Answer.Number, got, m.Answer, number, code)
	}
}

// The supervisor keeps the bound of calls also where the gate does not: a call too many is
// answered, one that is cancelled keeps its place until it has ended, and a number that is
// under way is no second call.
func TestCallsOfAGateAreBounded(t *testing.T) {
	t.Parallel()
	s, kernel, gate := newShare(t)
	var calls []heldCall
	for i := range channel.MaxCalls {
		send(t, gate, call(uint64(i+1), "{}"))
		calls = append(calls, <-kernel)
	}
	send(t, gate, call(1, "{}"))
	send(t, gate, call(1000, "{}"))
	wantAnswer(t, gate, 1000, api.CodeBusy)
	send(t, gate, channel.FromGate{Cancel: 5})
	select {
	case <-calls[4].ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("it is not cancelled")
	}
	send(t, gate, channel.FromGate{Cancel: 4444}) // there is none
	send(t, gate, call(1001, "{}"))
	wantAnswer(t, gate, 1001, api.CodeBusy)
	calls[4].answer <- api.Failure(api.CodeCancelled, "", "it was cancelled")
	wantAnswer(t, gate, 5, api.CodeCancelled)
	for deadline := time.Now().Add(time.Minute); s.inFlight() == channel.MaxCalls; goruntime.Gosched() { // its place is free just behind its answer
		if time.Now().After(deadline) {
			t.Fatal("its place is not free")
		}
	}
	send(t, gate, call(1002, "{}"))
	last := <-kernel
	last.answer <- nil
	wantAnswer(t, gate, 1002, 0)
	for i, c := range calls {
		if i != 4 {
			if c.ctx.Err() != nil {
				t.Errorf("call %d is cancelled", i+1)
			}
			c.answer <- nil
			wantAnswer(t, gate, uint64(i+1), 0)
		}
	}
}

// The end of the gate cancels every call that it waited for.
func TestTheEndOfTheGateCancelsCalls(t *testing.T) {
	t.Parallel()
	_, kernel, gate := newShare(t)
	send(t, gate, call(1, "{}"))
	c := <-kernel
	gate.Close()
	select {
	case <-c.ctx.Done():
	case <-time.After(time.Minute):
		t.Error("it is not cancelled")
	}
	c.answer <- nil
}

// An answer that does not fit into a packet is an error, and the next one arrives. Refusals
// of rights and budgets are counted, mistakes are not.
func TestAnswersReachTheGate(t *testing.T) {
	t.Parallel()
	s, _, gate := newShare(t)
	s.answer(1, json.RawMessage(`"`+strings.Repeat("x", channel.MaxMessageBytes)+`"`), nil)
	wantAnswer(t, gate, 1, api.CodeTooLarge)
	for i, code := range []api.Code{api.CodeDenied, api.CodeBudget, api.CodeParams, api.CodeNotFound, api.CodeBusy} {
		s.answer(uint64(i), nil, api.Failure(code, "", "x"))
		wantAnswer(t, gate, uint64(i), code)
	}
	if n := s.refusals.count.Load(); n != 2 {
		t.Errorf("%d refusals", n)
	}
}

// The loop gets the newest standing, with the notifications of all that it has not seen.
func TestTheNewestStandingHasAllNotices(t *testing.T) {
	t.Parallel()
	s := &share{stands: make(chan api.Standing, 1)}
	s.changed(api.Standing{Start: 1, Notices: []api.Notice{{Method: "a"}}})
	if first := s.first(); first.Start != 1 {
		t.Errorf("%+v", first)
	}
	s.changed(api.Standing{Start: 2, Net: []api.NetRule{{EgressRule: agent.EgressRule{Target: "x"}}}})
	s.changed(api.Standing{Start: 3, Notices: []api.Notice{{Method: "b"}, {Method: "c"}}})
	want := api.Standing{Start: 3, Notices: []api.Notice{{Method: "a"}, {Method: "b"}, {Method: "c"}}}
	if got := <-s.stands; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	s.changed(api.Standing{Start: 4})
	if got := <-s.stands; got.Start != 4 || len(got.Notices) != 0 {
		t.Errorf("%+v", got)
	}
}

// Rules of net grants are in force until they expire, by the wall clock of that moment.
func TestExpiredRulesAreNotOpen(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a, b := agent.EgressRule{Target: "a"}, agent.EgressRule{Target: "b"}
	s := &share{net: []api.NetRule{{EgressRule: a, Expires: now}, {EgressRule: b}}}
	for after, want := range map[time.Duration][]agent.EgressRule{-time.Hour: {a, b}, -1: {a, b}, 0: {b}, time.Hour: {b}} {
		if got := s.open(now.Add(after)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s after its expiry: %v", after, got)
		}
	}
}

// Granted rules stand behind those of the run, which stay as they are; a run without a
// network has only these.
func TestGrantedRules(t *testing.T) {
	t.Parallel()
	given, granted := []agent.EgressRule{{Target: "a"}}, []agent.EgressRule{{Target: "b"}}
	for _, row := range []struct {
		share   *share
		network string
		want    string
		rules   int
	}{
		{nil, agent.NetworkNone, agent.NetworkNone, 1},
		{&share{}, agent.NetworkNone, agent.NetworkNone, 1},
		{&share{granted: granted}, agent.NetworkNone, agent.NetworkAllowlist, 2},
		{&share{granted: granted}, agent.NetworkPublic, agent.NetworkPublic, 2},
	} {
		spec := agent.Spec{Network: row.network, Egress: agent.Egress{Rules: given[:1:1]}}
		got := row.share.withGranted(spec)
		if got.Network != row.want || len(got.Egress.Rules) != row.rules || len(spec.Egress.Rules) != 1 {
			t.Errorf("%+v becomes %s, %+v", row.share, got.Network, got.Egress.Rules)
		}
	}
}

// The socket lies alone in a directory that only its maker writes to, however long its path
// is. Everybody may connect, and who sends is known from the first byte.
func TestListenForAgent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40), "services")
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := listenForAgent(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: os.ModeDir | 0o755, filepath.Join(dir, agentSocketName): os.ModeSocket | 0o666} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if second, err := listenForAgent(dir); err == nil {
		second.Close()
		t.Error("a directory that is there is taken")
	}
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file.Close()
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	caller, err := net.Dial("unix", filepath.Join("/proc/self/fd", fmt.Sprint(at.Fd()), agentSocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	if _, err := io.WriteString(caller, "x"); err != nil { // before it is accepted
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	oob := make([]byte, 64)
	n, oobn, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), oob)
	if err != nil || n != 1 {
		t.Fatal(n, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%+v, %v", messages, err)
	}
	if sender, err := unix.ParseUnixCredentials(&messages[0]); err != nil || int(sender.Uid) != os.Getuid() || int(sender.Pid) != os.Getpid() {
		t.Errorf("%+v, %v", sender, err)
	}
}
