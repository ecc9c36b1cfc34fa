package supervisor

import (
	"context"
	"io"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// exec runs one more process in the sandbox for as long as its caller stays.
func (v *server) exec(c *rpc.Conn, request rpc.Message) {
	var p api.ExecParams
	if !decode(c, request, &p) {
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
		listenTo(ctx, c, s, nil)
		leave()
	}()
	// ctx ends with the session, and the process with it.
	code, err := v.live.Exec(ctx, p.Exec, s.io)
	// Behind this all output is sent: the answer has to be the last message.
	s.close()
	// A command that is not found, or cannot be executed, is how the process ended, and no
	// error of the call: clove exec exits with 127 or 126, as a shell does.
	result := api.ExecResult{ExitCode: code}
	if err != nil && (code == agent.ExitCannotExec || code == agent.ExitNotFound) {
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
