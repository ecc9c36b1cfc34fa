package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/client"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/runtime"
	"clove.run/clove/store"
)

// patience bounds every wait of a test, also on a loaded machine.
const patience = time.Minute

// rig is a cloved with a real store and agents that exist only in it.
type rig struct {
	t       testing.TB
	d       *Daemon
	records records
	dir     string

	mu       sync.Mutex
	started  []string        // names, in order
	refuse   map[string]bool // names whose start fails
	gates    map[string]gate
	memory   runtime.HostMemory // of the host that this plays
	together []int64            // limits of all agents, in order

	drain    func()          // ends what serve began
	cleaning <-chan struct{} // the clean-up waits for it; nil: it does not
}

// gate delays one start.
type gate struct{ began, open chan struct{} }

func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	return newRigIn(t, t.TempDir(), change)
}

func newRigIn(t testing.TB, dir string, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, dir: dir, refuse: map[string]bool{}, gates: map[string]gate{}}
	config := DefaultConfig()
	config.MemoryShare = 0
	if change != nil {
		change(&config)
	}
	r.d = New(Options{Paths: runtime.Paths{State: filepath.Join(r.dir, "state"), Run: filepath.Join(r.dir, "run")}, Config: config,
		Sandboxes: r, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	must(t, os.Mkdir(filepath.Join(r.dir, "run"), 0o755))
	r.d.reconciler.starter, r.d.guards = r, &fakeGuards{answer: supervisor.Answer{Started: true}}
	r.d.socket.Store(new(filepath.Join(r.dir, "s"))) // where serve listens; supervisors get it also without that
	r.records = r.d.records
	must(t, r.records.with(func(*store.Store) error { return nil })) // makes the file
	return r
}

// serve runs the daemon on a socket until the test ends.
func (r *rig) serve() *client.Client {
	r.t.Helper()
	path := filepath.Join(r.dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(r.t, err)
	alive, stop := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- r.d.Serve(alive, listener, -1, func() { close(ready) }) }()
	<-ready
	c, err := client.Dial(context.Background(), path)
	must(r.t, err)
	r.drain = sync.OnceFunc(func() {
		stop()
		must(r.t, <-done)
	})
	r.t.Cleanup(func() {
		c.Close()
		r.drain()
	})
	return c
}

// dial opens a bare connection to a served daemon.
func (r *rig) dial() *rpc.Conn {
	r.t.Helper()
	c, err := rpc.Dial(context.Background(), filepath.Join(r.dir, "s"))
	must(r.t, err)
	must(r.t, c.SetDeadline(time.Now().Add(patience)))
	r.t.Cleanup(func() { c.Close() })
	return c
}

// start plays a supervisor up to the moment at which the agent executes.
func (r *rig) start(order supervisor.Order) (supervisor.Answer, <-chan struct{}, error) {
	name := order.Spec.Name
	r.mu.Lock()
	r.started = append(r.started, name)
	refused := r.refuse[name]
	held, isHeld := r.gates[name]
	r.mu.Unlock()
	if isHeld {
		close(held.began)
		<-held.open
	}
	if refused {
		return supervisor.Answer{}, nil, &agent.Error{Kind: agent.KindUnenforceable, Step: "--memory", Message: "cannot hold it", Hint: "ask for less"}
	}
	err := r.records.with(func(s *store.Store) error {
		if _, err := s.Begin(agent.Run{Spec: order.Spec, Lease: &agent.Lease{}}); err != nil {
			return err
		}
		_, err := s.Apply(order.Spec.ID, agent.EventStarted, func(run *agent.Run) { run.Started = time.Now() })
		return err
	})
	return supervisor.Answer{Started: err == nil}, nil, err
}

// end plays the agent's end.
func (r *rig) end(ref string, code int) {
	r.t.Helper()
	must(r.t, r.records.with(func(s *store.Store) error {
		run, err := s.Get(ref)
		if err != nil {
			return err
		}
		_, err = s.Finish(run.Spec.ID, agent.EventRecorded, agent.Record{Version: agent.RecordVersion, ID: run.Spec.ID, Name: run.Spec.Name,
			Status: agent.StatusExited, ExitCode: code, Ended: time.Now()}, nil)
		return err
	}))
}

func (r *rig) Refuse(id agent.ID, cause error) error {
	return r.records.with(func(s *store.Store) error {
		run, err := s.Get(string(id))
		if agent.KindOf(err) == agent.KindNotFound {
			return nil
		}
		if err == nil && run.State == agent.StateQueued {
			_, err = s.Finish(id, agent.EventRecorded, runtime.Refused(run.Spec, time.Now(), cause), nil)
		}
		return err
	})
}

func (r *rig) Remove(ref string) error {
	return r.records.with(func(s *store.Store) error { return s.Remove(agent.ID(ref)) })
}

func (r *rig) Homes(uint32) ([]agent.KeptHome, error) { return []agent.KeptHome{}, nil }

func (r *rig) RemoveHome(ref string, _ uint32) error {
	return &agent.Error{Kind: agent.KindNotFound, Message: "there is no kept home " + ref}
}

func (r *rig) RemoveLost(time.Time) ([]runtime.Problem, error) { return nil, nil }

func (r *rig) Changes(context.Context, runtime.Reading) ([]agent.Change, error) { return nil, nil }

// Panic and ClearPanic are the runtime's; no agent of the rig is a process.
func (r *rig) Panic(reason string) ([]agent.Run, error) {
	return nil, r.d.records.with(func(s *store.Store) error { return s.SetPanic(&store.Panic{Reason: reason, Time: time.Now()}) })
}

func (r *rig) ClearPanic() error {
	return r.d.records.with(func(s *store.Store) error { return s.SetPanic(nil) })
}

func (r *rig) CopyChanges(context.Context, runtime.Reading, io.Writer) (runtime.Copied, error) {
	return runtime.Copied{}, nil
}

func (r *rig) CopyKept(context.Context, string, string, io.Writer) error { return nil }

func (r *rig) ApplyChanges(context.Context, runtime.Reading, func(all, chosen []agent.Change) (runtime.Consent, error)) ([]agent.Change, error) {
	return nil, nil
}
func (r *rig) Clean() ([]runtime.Problem, error) {
	if r.cleaning != nil {
		<-r.cleaning
	}
	return nil, nil
}
func (r *rig) Supervised(agent.ID) bool { return true }

func (r *rig) Memory([]agent.Run) (runtime.HostMemory, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory, nil
}

func (r *rig) LimitTogether(most int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.together = append(r.together, most)
	return nil
}
func (r *rig) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.started...)
}

// hold delays the start of a run: began is closed when it has begun, and it continues at
// proceed or at the end of the test.
func (r *rig) hold(name string) (began <-chan struct{}, proceed func()) {
	g := gate{began: make(chan struct{}), open: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gates[name] = g
	proceed = sync.OnceFunc(func() { close(g.open) })
	r.t.Cleanup(proceed)
	return g.began, proceed
}

// spec returns a complete spec.
func spec(name string) agent.Spec {
	return agent.Spec{ID: agent.NewID(), Name: name, Command: []string{"true"}, Network: agent.NetworkNone,
		Seccomp: agent.Seccomp{Profile: "standard"}, Limits: agent.Limits{MemoryBytes: 64 << 20, MemorySwapBytes: 64 << 20, Pids: 64,
			DiskBytes: 64 << 20, ShmBytes: 1 << 20, StopGrace: time.Second, Rlimits: []agent.Rlimit{{Name: "nofile", Soft: 64, Hard: 64}}}}
}

// add stores a run of an owner in a state.
func (r *rig) add(name string, owner agent.Owner, state agent.State) agent.Run {
	r.t.Helper()
	s := spec(name)
	s.Detached = true
	run, err := r.records.enqueue(agent.Run{Spec: s, Owner: owner, Queue: agent.QueueState{NotBefore: time.Now().Add(time.Hour)}})
	must(r.t, err)
	if state != agent.StateQueued {
		_, _, err := r.start(supervisor.Order{Spec: s})
		must(r.t, err)
	}
	if state == agent.StateEnded {
		r.end(string(s.ID), 0)
	}
	return run
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode fails the test unless err is the API's error with this code.
func wantCode(t *testing.T, err error, code api.Code) {
	t.Helper()
	var known *api.Error
	if !errors.As(err, &known) || known.Code != code {
		t.Errorf("got %v, want code %d", err, code)
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// changeSpec changes a stored spec.
func changeSpec(id agent.ID, change func(*agent.Spec)) func(*store.Store) error {
	return func(s *store.Store) error {
		_, err := s.Amend(id, agent.RunUpdated, "", func(run *agent.Run) { change(&run.Spec) })
		return err
	}
}

// forgetRun removes an ended run, if it is still there.
func forgetRun(id agent.ID) func(*store.Store) error {
	return func(s *store.Store) error { return s.Remove(id) }
}
