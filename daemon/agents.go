package daemon

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/kernel/channel"
)

// serveAgent answers the calls of a run's agent on the channel to its gate, whose descriptor the
// supervisor passes, until the gate or the supervisor has gone or cloved ends. The supervisor notices by
// the end of the connection.
func (s *server) serveAgent(c *rpc.Conn, peer caller, request rpc.Message) {
	run, err := s.supervised(peer, methods.KernelServe.Method(), request, func(p any) agent.ID { return p.(api.KernelServeParams).Run })
	var calls *channel.Conn
	if err == nil {
		calls, err = takeChannel(c)
	}
	if err != nil {
		_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		return
	}
	defer calls.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer c.WhenGone(func() { cancel(nil) })()
	defer context.AfterFunc(s.ending, func() { cancel(errEnding) })()
	notifier := channel.NewNotifier(calls)
	leave := s.shared.kernel.Notices(run.Spec.ID, notifier.Notify)
	defer func() { leave(notifier.End()) }()
	err = calls.Serve(ctx, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		result, err := s.dispatch.contained(peer, method, func() (any, error) { return s.shared.agentCall(ctx, run.Spec.ID, method, params) })
		text, _ := result.(json.RawMessage) // none with an error
		return text, ended(ctx, err)
	})
	s.log.Debug("the calls of an agent are not served any more", "run", run.Spec.ID, "reason", err)
}

// supervised reads the request of a supervisor's session, and returns its run.
func (s *server) supervised(peer caller, m api.Method, asked rpc.Message, named func(params any) agent.ID) (run agent.Run, err error) {
	_, err = s.dispatch.observed(context.Background(), peer, m, asked.Params, func(_ context.Context, p parameters) (_ any, err error) {
		_, err = s.dispatch.allow(peer.principal, m, p)
		defer func() { s.dispatch.audit(&request{peer: peer}, m, p, err) }()
		if err == nil {
			err = p.wrong
		}
		if err != nil {
			return nil, err
		}
		run, err = s.shared.run(named(p.value))
		return nil, err
	})
	return run, err
}

// channelTime bounds the wait for the descriptor.
const channelTime = 10 * time.Second

// takeChannel asks for the descriptor of a channel.
func takeChannel(c *rpc.Conn) (*channel.Conn, error) {
	file, err := takeFile(c)
	if err != nil {
		return nil, err
	}
	return channel.New(file), nil
}

// takeFile asks for a descriptor. It cannot come with the request, which is read into a buffer with
// read(2): that drops descriptors (unix(7)).
func takeFile(c *rpc.Conn) (*os.File, error) {
	if err := c.Notify(api.NoteReady, api.Nothing{}); err != nil {
		return nil, err
	}
	if err := c.SetReadDeadline(time.Now().Add(channelTime)); err != nil {
		return nil, err
	}
	var fds []int
	var err error
	if len(c.Buffered()) == 0 {
		_, fds, err = passfd.Receive(c.Conn.(*net.UnixConn), make([]byte, 1), 1)
	}
	if len(fds) != 1 {
		return nil, api.Failure(api.CodeRequest, "", "no descriptor was passed: %v", err)
	}
	return passfd.New(fds[0])
}
