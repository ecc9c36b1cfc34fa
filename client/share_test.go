package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/internal/rpc"
)

// The answers of cloved to a supervisor that has it serve calls: a refusal is its error, and an end is not.
func TestServe(t *testing.T) {
	t.Parallel()
	run := agent.NewID()
	var mu sync.Mutex // of one connection after the other
	var got []string
	path, _ := fake(t, func(c *rpc.Conn, m rpc.Message) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m.Method+" "+string(m.Params))
		if len(got) == 1 {
			return nil, api.Failure(api.CodeNotFound, "", "no run")
		}
		if err := c.Notify(api.NoteReady, api.Nothing{}); err != nil {
			return nil, err
		}
		_, fds, err := passfd.Receive(c.Conn.(*net.UnixConn), make([]byte, 1), 1)
		got = append(got, fmt.Sprint(len(fds), " descriptors"))
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, err // closes
	})
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := NewShare(At(path))
	if err := s.Serve(context.Background(), run, file); err == nil || api.ErrorOf(err).Code != api.CodeNotFound {
		t.Errorf("refused: %v", err)
	}
	if err := s.Serve(context.Background(), run, file); agent.KindOf(err) != agent.KindBusy {
		t.Errorf("ended: %v", err)
	}
	mu.Lock()
	if asked := fmt.Sprintf(`kernel.serve {"run":"%s"}`, run); !slices.Equal(got, []string{asked, asked, "1 descriptors"}) {
		t.Errorf("%q", got)
	}
	mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if s.Serve(ctx, run, file) == nil {
		t.Error("its context has ended, and it serves")
	}
	if err := NewShare(At(filepath.Join(t.TempDir(), "s"))).Serve(context.Background(), run, file); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("without cloved: %v", err)
	}
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
	s := NewShare(At(path))
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

// A start waits for a cloved that comes back, and no longer than its context.
func TestAttachWaitsForCloved(t *testing.T) {
	t.Parallel()
	path, _ := fake(t, func(c *rpc.Conn, m rpc.Message) (any, error) {
		return nil, errors.Join(c.Notify(api.NoteStanding, api.StandingNote{ID: m.ID}), c.Close())
	})
	later := filepath.Join(t.TempDir(), "s")
	attached := make(chan error, 1)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	go func() { attached <- NewShare(At(later)).Attach(ctx, agent.Run{}, func(api.Standing) {}) }()
	select {
	case err := <-attached:
		t.Fatalf("it does not wait: %v", err)
	case <-time.After(2 * attachAgain):
	}
	if err := os.Symlink(path, later); err != nil {
		t.Fatal(err)
	}
	if err := <-attached; err != nil {
		t.Error(err)
	}
	ended, end := context.WithCancel(context.Background())
	go func() {
		attached <- NewShare(At(filepath.Join(t.TempDir(), "s"))).Attach(ended, agent.Run{}, func(api.Standing) {})
	}()
	end()
	if err := <-attached; err == nil {
		t.Error("it attached without cloved")
	}
}

// The error of a cloved that cannot be reached at the start says what to do.
func TestAttachWithoutCloved(t *testing.T) {
	t.Parallel()
	s := NewShare(At(filepath.Join(t.TempDir(), "s")))
	s.patience = 0
	err := s.Attach(context.Background(), agent.Run{}, func(api.Standing) {})
	if agent.KindOf(err) != agent.KindNotFound || !strings.Contains(err.Error(), "cloved does not run") {
		t.Errorf("%v", err)
	}
}
