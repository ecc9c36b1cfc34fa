package daemon

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/store"
)

// actors is a starter whose supervisors are goroutines: each has a socket, accepts orders, and
// stores its agent's record, as a real one does.
type actors struct {
	*rig
	all sync.WaitGroup

	mu   sync.Mutex // guards live
	live map[*actor]bool
}

// newActors makes a rig whose agents can be ended. Its tests write to the store often, so the
// store is in memory: the speed of the machine's disk must not matter.
func newActors(t *testing.T, change func(*Config)) *actors {
	dir, err := os.MkdirTemp("/dev/shm", "clove-actors-*")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &actors{rig: newRigIn(t, dir, change), live: map[*actor]bool{}}
	a.d.reconciler.starter = a
	a.d.reconciler.retry = retryTime / 20 // they have no processes whose end could be waited for
	t.Cleanup(func() {                    // cloved has ended by then, and starts no more
		a.mu.Lock()
		for one := range a.live {
			one.listener.Close()
		}
		a.mu.Unlock()
		a.all.Wait()
	})
	return a
}

// start plays a supervisor and its agent, which runs until it is ended.
func (a *actors) start(order supervisor.Order) (supervisor.Answer, <-chan struct{}, error) {
	gone := make(chan struct{})
	// The directory is there before the run executes, as with a real supervisor: a caller that finds
	// none takes the run for one without a supervisor, and does not wait for the socket.
	dir := filepath.Join(a.d.options.Paths.Run, string(order.Spec.ID))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return supervisor.Answer{}, gone, err
	}
	answer, _, err := a.rig.start(order)
	if err != nil {
		os.RemoveAll(dir)
		close(gone)
		return answer, gone, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, supervisor.SocketName), Net: "unix"})
	if err != nil {
		return answer, gone, err
	}
	one := &actor{actors: a, spec: order.Spec, listener: listener}
	a.note(one, true)
	a.all.Go(func() {
		one.play()
		os.RemoveAll(dir)
		a.note(one, false)
		close(gone)
	})
	return answer, gone, nil
}

func (a *actors) note(one *actor, alive bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if alive {
		a.live[one] = true
		return
	}
	delete(a.live, one)
}

// actor is one supervisor and its agent.
type actor struct {
	*actors
	spec     agent.Spec
	listener *net.UnixListener
	over     sync.Once
	calls    sync.WaitGroup
}

func (o *actor) play() {
	for {
		conn, err := o.listener.AcceptUnix()
		if err != nil {
			break
		}
		o.calls.Go(func() { o.answer(rpc.New(conn)) })
	}
	o.calls.Wait()
}

// answer serves one connection with one request.
func (o *actor) answer(c *rpc.Conn) {
	defer c.Close()
	m, err := c.Receive()
	if err != nil {
		return
	}
	var result any = api.Nothing{}
	if m.Method == methods.RunExec.Name {
		result = api.ExecResult{}
	}
	_ = c.Respond(m.ID, result, nil)
	if m.Method == methods.RunStop.Name || m.Method == methods.RunSignal.Name {
		o.end()
	}
}

// end stores the record first and is unreachable afterwards, like a supervisor.
func (o *actor) end() {
	o.over.Do(func() {
		err := o.records.with(func(s *store.Store) error {
			_, err := s.Finish(o.spec.ID, agent.EventRecorded, agent.Record{Version: agent.RecordVersion, ID: o.spec.ID, Name: o.spec.Name,
				Status: agent.StatusKilled, ExitCode: agent.ExitKilled, Ended: time.Now()}, nil)
			return err
		})
		if err != nil {
			o.t.Errorf("the end of %s: %v", o.spec.Name, err)
		}
		o.listener.Close()
	})
}
