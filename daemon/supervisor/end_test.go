package supervisor

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

const someID agent.ID = "0123456789abcdef"

// played plays a supervisor that answers as a test wants; if answer is nil it closes the
// connection.
func played(t *testing.T, answer func(rpc.Message) (result, fault any, stay bool)) (dir string, asked func() []rpc.Message) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, string(someID)), 0o700))
	listener, err := net.Listen("unix", filepath.Join(dir, string(someID), SocketName))
	must(t, err)
	var mu sync.Mutex
	var heard []rpc.Message
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		c := rpc.New(conn)
		defer c.Close()
		for {
			m, err := c.Receive()
			if err != nil {
				return
			}
			mu.Lock()
			heard = append(heard, m)
			mu.Unlock()
			result, fault, stay := answer(m)
			if !stay || c.Respond(m.ID, result, fault) != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return dir, func() []rpc.Message { mu.Lock(); defer mu.Unlock(); return slices.Clone(heard) }
}

// End stops the run with the grace period, and returns when the record is stored.
func TestEnd(t *testing.T) {
	t.Parallel()
	dir, asked := played(t, func(rpc.Message) (any, any, bool) { return api.Nothing{}, nil, true })
	must(t, End(t.Context(), dir, someID, 3*time.Second))
	heard := asked()
	if len(heard) != 2 || heard[0].Method != methods.RunStop.Name || heard[1].Method != MethodWait {
		t.Fatalf("%+v", heard)
	}
	var p api.StopParams
	must(t, json.Unmarshal(heard[0].Params, &p))
	if p.GraceNS == nil || *p.GraceNS != int64(3*time.Second) {
		t.Errorf("%s", heard[0].Params)
	}
}

// A run that ends by itself meanwhile, or has no supervisor, counts as ended.
func TestEndOfOneThatIsGone(t *testing.T) {
	t.Parallel()
	must(t, End(t.Context(), t.TempDir(), someID, 0))
	dir, _ := played(t, func(m rpc.Message) (any, any, bool) { return nil, nil, false })
	must(t, End(t.Context(), dir, someID, 0))
	dir, _ = played(t, func(m rpc.Message) (any, any, bool) {
		if m.Method == methods.RunStop.Name {
			return nil, api.Failure(api.CodeConflict, "", "it is ending"), true
		}
		return api.WaitResult{}, nil, true
	})
	must(t, End(t.Context(), dir, someID, 0))
}

// Any other refusal is returned, and a supervisor that does not answer is waited for until ctx
// ends.
func TestEndFails(t *testing.T) {
	t.Parallel()
	dir, _ := played(t, func(rpc.Message) (any, any, bool) {
		return nil, api.Failure(api.CodeInternal, "", "broken"), true
	})
	if err := End(t.Context(), dir, someID, 0); err == nil {
		t.Error("a failure is not told")
	}
	ctx, cancel := context.WithCancel(t.Context())
	dir, _ = played(t, func(rpc.Message) (any, any, bool) { cancel(); <-ctx.Done(); return api.Nothing{}, nil, true })
	if err := End(ctx, dir, someID, 0); err == nil {
		t.Error("it ended before it answered")
	}
}
