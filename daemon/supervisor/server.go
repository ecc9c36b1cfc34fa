package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/runtime"
)

// maxSessions bounds the sessions of one run: one that types to an agent which
// does not read stays until the agent ends, whether its caller is there or not.
const maxSessions = 32

// server answers on the run's socket.
type server struct {
	*supervisor
	live     *runtime.Live
	listener *net.UnixListener
	accepted chan struct{}   // closed when no connection is accepted any more
	all      sync.WaitGroup  // conversations
	context  context.Context // of what sessions do; ends with finish
	cancel   context.CancelFunc
	sessions atomic.Int32 // that are open

	mu    sync.Mutex // guards conns
	conns map[*rpc.Conn]bool
}

// newServer begins to accept at once; finish ends it.
func newServer(s *supervisor, live *runtime.Live, listener *net.UnixListener) *server {
	v := &server{supervisor: s, live: live, listener: listener, accepted: make(chan struct{}), conns: map[*rpc.Conn]bool{}}
	v.context, v.cancel = context.WithCancel(context.Background())
	go v.accept()
	return v
}

// accept ends with the listener.
func (v *server) accept() {
	defer close(v.accepted)
	for {
		conn, err := v.listener.AcceptUnix()
		if err != nil {
			return
		}
		// Without an answer: only cloved and clove, both root, have business here.
		if !fromRoot(conn) {
			conn.Close()
			continue
		}
		c := rpc.New(conn)
		v.mu.Lock()
		// Before its goroutine begins, so that finish, which waits for accept first, finds
		// each.
		v.conns[c] = true
		v.mu.Unlock()
		v.all.Go(func() {
			v.converse(c)
			v.mu.Lock()
			delete(v.conns, c)
			v.mu.Unlock()
			c.Close()
		})
	}
}

// fromRoot asks the kernel who connected.
func fromRoot(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	allowed := false
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		allowed = err == nil && peer.Uid == 0
	})
	return err == nil && allowed
}

// finish lets conversations come to their end, and ends those that do not.
func (v *server) finish(patience time.Duration) {
	v.listener.Close()
	<-v.accepted // a caller that came at the last moment is among the conversations
	done := make(chan struct{})
	go func() { v.all.Wait(); close(done) }()
	// A conversation that only waits for the next request has sent all its answers.
	timer := time.AfterFunc(patience, v.closeAll)
	defer timer.Stop()
	v.mu.Lock()
	for c := range v.conns {
		_ = c.SetReadDeadline(time.Now())
	}
	v.mu.Unlock()
	<-done
	v.cancel()
}

// closeAll ends the conversations that are left, whatever they do.
func (v *server) closeAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.conns {
		c.Close()
	}
}

// converse answers one request after the other. A session is the last.
func (v *server) converse(c *rpc.Conn) {
	for {
		m, err := c.Receive()
		if err != nil {
			return
		}
		if serve, isSession := sessions[m.Method]; isSession {
			if v.sessions.Add(1) > maxSessions {
				_ = c.Respond(m.ID, nil, api.Failure(api.CodeBusy, "end some of them", "the run has %d sessions, and may have no more", maxSessions))
			} else {
				serve(v, c, m)
			}
			v.sessions.Add(-1)
			return
		}
		result, err := v.call(m)
		if conclude(c, m, result, err) != nil {
			return
		}
	}
}

// calls are the methods that answer once.
var calls = map[string]func(v *server, params json.RawMessage) (any, error){
	MethodWait: func(v *server, _ json.RawMessage) (any, error) {
		<-v.ended
		return api.WaitResult{Record: v.record}, nil
	},
	MethodIdle: func(v *server, _ json.RawMessage) (any, error) { return api.Nothing{}, v.live.EndIdle() },
	MethodDebug: func(*server, json.RawMessage) (any, error) {
		stacks := make([]byte, stackBytes)
		return api.DebugResult{Text: string(stacks[:goruntime.Stack(stacks, true)])}, nil
	},
	methods.RunStop.Name: with(func(v *server, p api.StopParams) (any, error) {
		grace := v.spec.Limits.StopGrace
		if p.GraceNS != nil {
			grace = time.Duration(*p.GraceNS)
		}
		v.hurryHost()
		return api.Nothing{}, v.live.Stop(grace)
	}),
	methods.RunSignal.Name: with(func(v *server, p api.SignalParams) (any, error) {
		if p.Own() {
			v.hurryHost()
			return api.Nothing{}, v.live.EndBy(p.Budget, p.Reason)
		}
		if unix.Signal(p.Signal) == unix.SIGKILL {
			v.hurryHost()
		}
		return api.Nothing{}, v.live.Signal(unix.Signal(p.Signal))
	}),
	methods.RunPause.Name:  with(func(v *server, _ api.RunParams) (any, error) { return api.Nothing{}, v.live.Pause() }),
	methods.RunResume.Name: with(func(v *server, _ api.RunParams) (any, error) { return api.Nothing{}, v.live.Resume() }),
	methods.RunUpdate.Name: with(func(v *server, p api.UpdateParams) (any, error) { return api.Nothing{}, v.live.Update(p.Update) }),
	methods.RunStats.Name: with(func(v *server, _ api.RunParams) (any, error) {
		stats, err := v.live.Stats()
		return api.StatsResult{Stats: stats}, err
	}),
	methods.RunProcesses.Name: with(func(v *server, _ api.RunParams) (any, error) {
		processes, err := v.live.Processes()
		return api.ProcessesResult{Processes: processes}, err
	}),
}

// MethodWait answers with the record, and its connection's end without an
// answer says that the supervisor died.
const MethodWait = "supervisor.wait"

// MethodIdle ends the agent because it has only waited for the time of the run.
const MethodIdle = "supervisor.idle"

// MethodDebug answers with what each goroutine of the supervisor waits for.
const MethodDebug = "supervisor.debug"

// stackBytes is room for some hundred goroutines: there are a few for each
// caller that is attached.
const stackBytes = 256 << 10

// call answers one request. An agent keeps its supervisor over upgrades of cloved, so an
// unknown method can be a newer cloved's.
func (v *server) call(m rpc.Message) (any, error) {
	serve, known := calls[m.Method]
	if !known {
		return nil, api.Failure(api.CodeMethod, "this supervisor is of another version: restart the run to change it", "there is no method %q", m.Method)
	}
	return serve(v, m.Params)
}

// with decodes the parameters of a call.
func with[P any](serve func(*server, P) (any, error)) func(*server, json.RawMessage) (any, error) {
	return func(v *server, params json.RawMessage) (any, error) {
		var p P
		if len(params) > 0 {
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, api.Unreadable(err)
			}
		}
		result, err := serve(v, p)
		if err != nil && errors.Is(err, context.Canceled) {
			err = api.Failure(api.CodeCancelled, "", "the request was cancelled")
		}
		return result, err
	}
}
