package supervisor

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// exec runs one more process in the sandbox, which is ended when its caller leaves.
func (v *server) exec(c *rpc.Conn, request rpc.Message) {
	var p api.ExecParams
	if !decode(c, request, &p) {
		return
	}
	if p.Detach {
		v.execDetached(c, request, p)
		return
	}
	s, err := openStreams(p.Exec.Terminal, p.Stdin, func(stream string) io.Writer { return noteWriter{c, stream} })
	if err != nil {
		_ = conclude(c, request, nil, err)
		return
	}
	s.fit(p.Size)
	ctx, leave := context.WithCancel(v.context)
	defer leave()
	defer c.WhenGone(leave)()
	go func() {
		listenTo(ctx, c, s, func(m rpc.Message) bool {
			var signal api.SessionSignal
			if m.Method == api.NoteSignal && json.Unmarshal(m.Params, &signal) == nil && unix.Signal(signal.Signal) == unix.SIGTERM {
				leave() // and listen on: a caller that waits for the end has not left
			}
			return m.Method == api.NoteSignal
		})
		leave()
	}()
	// The end of ctx ends the process.
	code, err := v.live.Exec(ctx, p.Exec, s.io)
	// Behind this all output is sent: the answer has to be the last message.
	s.close()
	concludeExec(c, request, code, err)
}

// execDetached starts a process that stays when its caller leaves.
func (v *server) execDetached(c *rpc.Conn, request rpc.Message, p api.ExecParams) {
	if p.Stdin || p.Exec.Terminal {
		_ = conclude(c, request, nil, &agent.Error{Kind: agent.KindInvalid, Step: "exec", Message: "a detached process has neither input nor a terminal",
			Hint: "omit the one or the other"})
		return
	}
	code, err := v.live.ExecDetached(v.context, p.Exec)
	concludeExec(c, request, code, err)
}

// concludeExec answers with how a process ended. A command that is not found, cannot be
// executed, or was ended at its time limit is no error of the call: clove exec exits with 127,
// 126 or 124, as a shell and timeout(1) do.
func concludeExec(c *rpc.Conn, request rpc.Message, code int, err error) {
	result := api.ExecResult{ExitCode: code}
	if err != nil && slices.Contains([]int{agent.ExitCannotExec, agent.ExitNotFound, agent.ExitTimeout}, code) {
		result.Failure, err = agent.FailureOf(err), nil
	}
	_ = conclude(c, request, result, err)
}

// noteWriter sends what a process writes to the session's caller. A caller that
// reads slowly slows the process down, and nothing else.
type noteWriter struct {
	conn   *rpc.Conn
	stream string
}

func (w noteWriter) Write(data []byte) (int, error) {
	if err := w.conn.Notify(api.NoteOutput, api.SessionOutput{Stream: w.stream, Data: data}); err != nil {
		return 0, err
	}
	return len(data), nil
}
