package runtime

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/channel"
)

// answers is a Kernel that serves calls by what the test sends it: each value answers the next Serve's
// calls, with an error or, where it is nil, with their parameters, until the test takes from gone.
type answers struct {
	serves chan error
	gone   chan struct{}
}

func (a answers) Attach(context.Context, agent.Run, func(api.Standing)) error { return nil }

func (a answers) Call(_ context.Context, _ agent.ID, _ string, params json.RawMessage) (json.RawMessage, error) {
	return params, nil
}

func (a answers) Ask(context.Context, api.ApprovalAskParams, func(api.Approval)) (api.Approval, error) {
	return api.Approval{}, nil
}
func (a answers) Asked(context.Context, string, func(api.Approval)) (api.Approval, error) {
	return api.Approval{}, nil
}
func (a answers) Meter(context.Context, agent.ID, int, map[string]int64) error { return nil }

func (a answers) Serve(ctx context.Context, _ agent.ID, calls *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case answer := <-a.serves:
		go func() {
			select {
			case <-a.gone:
				cancel()
			case <-ctx.Done():
			}
		}()
		return channel.New(calls).Serve(ctx, func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
			return params, answer
		})
	default:
		return os.ErrDeadlineExceeded // it cannot be reached
	}
}

// servedShare is a share whose gate is the test.
func servedShare(t *testing.T, watches bool) (*share, answers, *channel.Conn) {
	t.Helper()
	calls, gate, err := channel.Both()
	if err != nil {
		t.Fatal(err)
	}
	kernel := answers{make(chan error, 1), make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	s := &share{kernel: kernel, ctx: ctx, calls: calls, standings: make(chan api.Standing, 1), refusals: newRefusals()}
	served := calls
	if watches {
		if served, err = s.watch(calls); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() { s.serve(served); close(ended) }()
	t.Cleanup(func() {
		gate.Close()
		<-ended
		cancel()
		calls.Close()
		served.Close()
	})
	return s, kernel, gate
}

// answerTo makes a call and returns the code of its answer; 0: a result.
func answerTo(t *testing.T, gate *channel.Conn, number uint64) api.Code {
	t.Helper()
	if err := gate.Send(channel.FromGate{Call: &channel.Call{Number: number, Method: agents.AgentGet.Name, Params: json.RawMessage("{}")}}); err != nil {
		t.Fatal(err)
	}
	for {
		var m channel.ToGate
		if err := gate.File().SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := gate.Receive(&m); err != nil {
			t.Fatal(err)
		}
		switch {
		case m.Answer == nil: // what was in flight is away
		case m.Answer.Number != number:
			t.Fatalf("%+v", m.Answer)
		case m.Answer.Error != nil:
			return m.Answer.Error.Code
		default:
			return 0
		}
	}
}

// Calls are refused while nothing serves them, and served as soon as something does, also where the
// supervisor looks at the answers.
func TestCallsAreServedAgain(t *testing.T) {
	t.Parallel()
	for _, watches := range []bool{false, true} {
		_, kernel, gate := servedShare(t, watches)
		number := uint64(1)
		for range 3 {
			if code := answerTo(t, gate, number); code != api.CodeBusy {
				t.Errorf("nothing serves: %d", code)
			}
			kernel.serves <- nil
			for number++; answerTo(t, gate, number) != 0; number++ {
			}
			if code := answerTo(t, gate, number+1); code != 0 {
				t.Errorf("it is served: %d", code)
			}
			kernel.gone <- struct{}{}
			number += 2
			for answerTo(t, gate, number) != api.CodeBusy {
				number++
			}
			number++
		}
	}
}

// What is read and not answered when cloved goes is answered with away.
func TestCallsInFlightAreAway(t *testing.T) {
	t.Parallel()
	_, _, gate := servedShare(t, true)
	var m channel.ToGate
	if err := gate.Receive(&m); err != nil || m.Away == nil || m.Away.Code != api.CodeBusy {
		t.Errorf("%+v, %v", m, err)
	}
}

// Refusals of rights and budgets are counted, mistakes are not. The control is a channel that is not
// watched.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	for _, watches := range []bool{false, true} {
		s, kernel, gate := servedShare(t, watches)
		number, refused := uint64(1), int64(0)
		for _, code := range []api.Code{api.CodeDenied, api.CodeBudget, api.CodeParams, api.CodeNotFound} {
			kernel.serves <- api.Failure(code, "", "x")
			// Calls may reach the answer of before, until the next one is there.
			for got := api.Code(0); got != code; number++ {
				if got = answerTo(t, gate, number); got == api.CodeDenied || got == api.CodeBudget {
					refused++
				}
			}
			kernel.gone <- struct{}{}
		}
		want := int64(0)
		if watches {
			want = refused
		}
		if n := s.refusals.count.Load(); n != want || refused < 2 {
			t.Errorf("watched %t: %d refusals are counted, want %d of %d", watches, n, want, refused)
		}
	}
}

func (answers) Answer(context.Context, api.ApprovalRespondParams) error { return nil }
