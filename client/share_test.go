package client

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// sharer is a Share of the cloved at path.
func sharer(t *testing.T, path string) *Share {
	t.Helper()
	s := NewShare(At(path))
	t.Cleanup(func() { s.Close() })
	return s
}

// echo answers a call of an agent with its parameters.
func echo(m rpc.Message) (any, error) {
	var p api.KernelCallParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return nil, err
	}
	if p.Method == methods.GrantGive.Name {
		return nil, api.Failure(api.CodeMethod, "h", "there is no method %s", p.Method)
	}
	return p.Params, nil
}

// Many calls at once share one connection, and each gets its own answer. An error answer is
// the caller's alone.
func TestCallsOfAnAgentShareAConnection(t *testing.T) {
	t.Parallel()
	path, connections := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) { return echo(m) })
	s := sharer(t, path)
	var all sync.WaitGroup
	for i := range 128 {
		all.Go(func() {
			params := fmt.Sprintf(`{"n":%d}`, i)
			if got, err := s.Call(context.Background(), "run", agents.AgentGet.Name, json.RawMessage(params)); err != nil || string(got) != params {
				t.Errorf("%s: %s, %v", params, got, err)
			}
			_, err := s.Call(context.Background(), "run", methods.GrantGive.Name, nil)
			if e := api.ErrorOf(err); err == nil || e.Code != api.CodeMethod || e.Data.Hint != "h" {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	if s.mu.Lock(); len(s.waiting) != 0 {
		t.Errorf("%d calls are still waited for", len(s.waiting))
	}
	s.mu.Unlock()
}

// Answers may come in another order than the calls.
func TestAnswersInAnyOrder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []rpc.Message
	path, _ := fake(t, func(c *rpc.Conn, m rpc.Message) (any, error) {
		mu.Lock()
		asked = append(asked, m)
		mu.Unlock()
		for len(asked) < 3 {
			m, err := c.Receive()
			if err != nil {
				return nil, err
			}
			asked = append(asked, m)
		}
		for i := range 2 {
			result, err := echo(asked[2-i])
			if err != nil {
				return nil, err
			}
			if err := c.Respond(asked[2-i].ID, result, nil); err != nil {
				return nil, err
			}
		}
		return echo(asked[0])
	})
	s := sharer(t, path)
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			params := fmt.Sprintf(`{"n":%d}`, i)
			if got, err := s.Call(context.Background(), "run", agents.AgentGet.Name, json.RawMessage(params)); err != nil || string(got) != params {
				t.Errorf("%s: %s, %v", params, got, err)
			}
		})
	}
	all.Wait()
}

// While cloved is away, calls are answered with busy at once, those in flight too. The first
// call behind its return works, without anything done for it.
func TestCallsWhileClovedIsAway(t *testing.T) {
	t.Parallel()
	var leave atomic.Bool
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		if leave.Load() {
			return nil, nil // closes
		}
		return echo(m)
	})
	s := sharer(t, path)
	call := func() error {
		_, err := s.Call(context.Background(), "run", agents.AgentGet.Name, json.RawMessage("{}"))
		return err
	}
	wantBusy := func(err error) {
		t.Helper()
		if err == nil || api.ErrorOf(err).Code != api.CodeBusy {
			t.Errorf("%v", err)
		}
	}
	for range 3 {
		if err := call(); err != nil {
			t.Fatal(err)
		}
		leave.Store(true)
		for range 3 {
			wantBusy(call())
		}
		leave.Store(false)
	}
	nobody := sharer(t, filepath.Join(t.TempDir(), "s"))
	_, err := nobody.Call(context.Background(), "run", agents.AgentGet.Name, nil)
	wantBusy(err)
}

// A call whose agent has cancelled it has the API's error, is cancelled in cloved, and leaves nothing
// behind.
func TestACancelledCallOfAnAgent(t *testing.T) {
	t.Parallel()
	asked, cancelled := make(chan struct{}), make(chan string, 1)
	path, _ := fake(t, func(c *rpc.Conn, call rpc.Message) (any, error) {
		close(asked)
		m, err := c.Receive()
		cancelled <- fmt.Sprint(m.Method, " ", string(m.Params), " ", string(call.ID))
		if err == nil {
			_, err = c.Receive() // ends when the Share closes
		}
		return nil, err
	})
	s := sharer(t, path)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	_, err := s.Call(ctx, "run", agents.AgentGet.Name, nil)
	if err == nil || api.ErrorOf(err).Code != api.CodeCancelled {
		t.Errorf("%v", err)
	}
	if got := <-cancelled; got != `request.cancel {"id":1} 1` {
		t.Errorf("cloved got %s", got)
	}
	if s.mu.Lock(); len(s.waiting) != 0 {
		t.Errorf("%d calls are still waited for", len(s.waiting))
	}
	s.mu.Unlock()
	s.Close()
}

// A run that cannot be attached at first does not start. Later, cloved may go and come: the
// Share attaches again, and only its first attachment begins the run.
func TestAttachAgain(t *testing.T) {
	t.Parallel()
	begins := make(chan bool, 100)
	var refuse atomic.Bool
	path, _ := fake(t, func(c *rpc.Conn, m rpc.Message) (any, error) {
		var p api.KernelParams
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return nil, err
		}
		if refuse.Load() {
			return nil, api.Failure(api.CodeNotFound, "", "no run")
		}
		begins <- p.Begins
		return nil, c.Notify(api.NoteStanding, api.StandingNote{ID: 1}) // and closes
	})
	s := sharer(t, path)
	run := agent.Run{Spec: agent.Spec{ID: agent.NewID()}}
	ctx, leave := context.WithCancel(context.Background())
	standings := make(chan api.Standing)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refuse.Store(true)
	if err := s.Attach(ctx, run, func(api.Standing) { t.Error("it stands") }); err == nil || api.ErrorOf(err).Code != api.CodeNotFound {
		t.Errorf("%v", err)
	}
	refuse.Store(false)
	attached := make(chan error, 1)
	go func() {
		attached <- s.Attach(ctx, run, func(now api.Standing) {
			select {
			case standings <- now:
			case <-ctx.Done():
			}
		})
	}()
	for i := range 3 {
		<-standings
		if first := <-begins; first != (i == 0) {
			t.Errorf("attachment %d begins the run: %t", i, first)
		}
		if i == 0 {
			must(<-attached)
		}
	}
	leave()
}

// The error of a cloved that cannot be reached at the start says what to do.
func TestAttachWithoutCloved(t *testing.T) {
	t.Parallel()
	err := sharer(t, filepath.Join(t.TempDir(), "s")).Attach(context.Background(), agent.Run{}, func(api.Standing) {})
	if agent.KindOf(err) != agent.KindNotFound || !strings.Contains(err.Error(), "cloved does not run") {
		t.Errorf("%v", err)
	}
}
