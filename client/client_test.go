package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// fake answers every request by method until the test ends.
func fake(t *testing.T, answer func(c *rpc.Conn, m rpc.Message) (any, error)) (path string, connections *atomic.Int32) {
	t.Helper()
	path, connections = filepath.Join(t.TempDir(), "s"), new(atomic.Int32)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			all.Go(func() {
				c := rpc.New(conn)
				defer c.Close()
				for {
					m, err := c.Receive()
					if err != nil {
						return
					}
					result, err := answer(c, m)
					if err != nil {
						_ = c.Respond(m.ID, nil, api.ErrorOf(err))
					} else if result != nil {
						_ = c.Respond(m.ID, result, nil)
					} else {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { listener.Close(); all.Wait() })
	return path, connections
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// One connection serves several calls; an error answer does not end it.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	path, connections := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		if m.Method == methods.RunGet.Name {
			return nil, &agent.Error{Kind: agent.KindNotFound, Message: "there is no run", Hint: "look"}
		}
		return api.InfoResult{Version: "x"}, nil
	})
	c := dial(t, path)
	for range 10 {
		if info, err := Do(context.Background(), c, methods.Info, api.Nothing{}); err != nil || info.Version != "x" {
			t.Fatalf("%+v, %v", info, err)
		}
		var known *agent.Error
		if _, err := Do(context.Background(), c, methods.RunGet, api.RunParams{Run: "one"}); !errors.As(err, &known) || known.Kind != agent.KindNotFound || known.Hint != "look" {
			t.Fatalf("%v", err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Concurrent calls do not wait for each other.
func TestCallsRunSideBySide(t *testing.T) {
	t.Parallel()
	var waiting sync.WaitGroup
	waiting.Add(16)
	path, _ := fake(t, func(*rpc.Conn, rpc.Message) (any, error) {
		waiting.Done()
		waiting.Wait()
		return api.Nothing{}, nil
	})
	c := dial(t, path)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := Perform(context.Background(), c, methods.RunPause, api.RunParams{Run: "one"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	path, _ := fake(t, func(c *rpc.Conn, _ rpc.Message) (any, error) {
		close(asked)
		_, err := c.Receive() // ends when the caller closes
		return nil, err
	})
	c := dial(t, path)
	ctx, leave := context.WithCancel(context.Background())
	go func() { <-asked; leave() }()
	if _, err := Do(ctx, c, methods.RunWait, api.RunParams{Run: "one"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// If cloved goes away during a call, the error says so, and the next call connects again.
func TestClovedGoesAway(t *testing.T) {
	t.Parallel()
	var answered atomic.Bool
	path, _ := fake(t, func(*rpc.Conn, rpc.Message) (any, error) {
		if !answered.Swap(true) {
			return nil, nil // closes
		}
		return api.Nothing{}, nil
	})
	c := dial(t, path)
	if err := Perform(context.Background(), c, methods.RunResume, api.RunParams{Run: "one"}); agent.KindOf(err) != agent.KindBusy || err == nil {
		t.Errorf("%v", err)
	}
	if err := Perform(context.Background(), c, methods.RunResume, api.RunParams{Run: "one"}); err != nil {
		t.Errorf("%v", err)
	}
}

// A caller that is refused gets the reason, also if cloved has closed the connection before
// the request.
func TestTheRefusalIsHeardBehindTheClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := dial(t, path)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := rpc.New(conn).Respond(json.RawMessage("null"), nil, api.Failure(api.CodeDenied, "", "you may not")); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var refused *api.Error
	if _, err := Do(ctx, c, methods.RunGet, api.RunParams{Run: "one"}); !errors.As(err, &refused) || refused.Code != api.CodeDenied {
		t.Errorf("%v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	if _, err := Dial(context.Background(), filepath.Join(t.TempDir(), "s")); agent.KindOf(err) != agent.KindNotFound || err == nil {
		t.Errorf("%v", err)
	}
}
