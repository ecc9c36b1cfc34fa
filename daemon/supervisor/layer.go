package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/internal/rpc"
)

// MethodLayer answers with a handle of the layer of an agent that stands still from then
// on, until the caller closes the connection. A supervisor that needs the agent to move
// again ends its side first. cloved reads by the handle, because the layer is mounted in
// the supervisor's mount namespace alone.
const MethodLayer = "supervisor.layer"

// letGoTime is how long a reader that is sent away may take: for as long it
// holds the layer's file system, and the run cannot end.
const letGoTime = 10 * time.Second

// giveLayer holds the agent for the caller of a connection.
func (v *server) giveLayer(c *rpc.Conn, request rpc.Message) {
	err := v.live.Layer(v.context, func(ctx context.Context, layer *os.File) error {
		if err := sendFile(c, request.ID, layer); err != nil {
			return err
		}
		// CloseWrite asks the reader to leave; behind the deadline the layer is taken from
		// it.
		stop := context.AfterFunc(ctx, func() {
			_ = c.SetReadDeadline(time.Now().Add(letGoTime))
			_ = c.CloseWrite()
		})
		defer stop()
		_, _ = io.Copy(io.Discard, c.Conn) // it says no more than that it has gone
		return nil
	})
	if err != nil {
		_ = conclude(c, request, nil, err)
	}
}

// sendFile answers a request with a descriptor beside the result (unix(7), SCM_RIGHTS).
func sendFile(c *rpc.Conn, id json.RawMessage, file *os.File) error {
	_, err := passfd.Send(c.Conn.(*net.UnixConn), rpc.Message{ID: id, Result: json.RawMessage("{}")}.Line(), file)
	return err
}

// Layer gives use the layer of a live run, whose agent stands still meanwhile.
// ctx of use ends when the supervisor wants it back.
func Layer(ctx context.Context, runDir string, id agent.ID, use func(ctx context.Context, layer *os.File) error) error {
	c, err := Connect(ctx, runDir, id)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Request(MethodLayer, api.Nothing{}); err != nil {
		if rpc.IsGone(err) {
			return Gone()
		}
		return agent.Failed("supervisor", err)
	}
	// receiveFile waits on the socket itself and not on a context.
	interrupt := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Now()) })
	defer interrupt()
	layer, err := receiveFile(c, filepath.Join(runDir, string(id)))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	defer layer.Close() // before the connection: then the supervisor may unmount it
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, c.Conn)
		cancel(errWanted)
	}()
	err = use(ctx, layer)
	if err != nil && context.Cause(ctx) == errWanted {
		return errWanted
	}
	return err
}

var errWanted = &agent.Error{Kind: agent.KindConflict, Step: "layer", Message: "the agent was resumed before its changes were read",
	Hint: "it has ended, or there is too much to read at once: `clove ps -a` shows it"}

// receiveFile reads the answer, and the descriptor that comes with it.
func receiveFile(c *rpc.Conn, name string) (*os.File, error) {
	// An answer is short. A descriptor comes with its first byte, so one read gets both.
	text := make([]byte, 64<<10)
	n, fds, err := passfd.Receive(c.Conn.(*net.UnixConn), text, 1)
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindConflict, Message: "the run ended meanwhile", Hint: "`clove ps -a` shows how", Err: err}
	}
	var file *os.File
	if len(fds) == 1 {
		file = os.NewFile(uintptr(fds[0]), name)
	}
	var answer rpc.Message
	err = json.Unmarshal(text[:n], &answer)
	switch {
	case err == nil && answer.Error != nil:
		err = api.ParseError(answer.Error)
	case err == nil && file == nil:
		err = errors.New("cannot receive the layer: the answer brings no descriptor")
	case err == nil:
		return file, nil
	}
	if file != nil {
		file.Close()
	}
	return nil, err
}
