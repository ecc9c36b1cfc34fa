package attach

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"clove.run/clove/agent"
	"clove.run/clove/internal/packet"
)

// Serve is what serves a run's agent until ctx ends.
type Serve func(ctx context.Context, run agent.ID, what For, listener *os.File) (Use, error)

// Use is what the calls of a run use.
type Use struct {
	Final   func() []agent.ModelUse // at the agent's end; nil: nothing is counted
	SoFar   func() []agent.ModelUse
	Changed <-chan struct{} // a value behind each change of SoFar; nil: it does not change
}

// Listen makes the socket in a run directory.
func Listen(runDir string) (*net.UnixListener, error) {
	return packet.Listen(filepath.Join(runDir, Socket))
}

// Accept serves supervisors until the listener closes.
func Accept(ctx context.Context, l *net.UnixListener, serve Serve) {
	for {
		conn, err := packet.Accept(l)
		if err != nil {
			return
		}
		go attend(ctx, conn, serve)
	}
}

// attend serves one run for as long as its supervisor holds the connection.
func attend(ctx context.Context, conn *packet.Conn, serve Serve) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var r request
	files, err := conn.Receive(&r)
	if err != nil || len(files) != 1 || r.Run == "" {
		packet.CloseAll(files)
		return
	}
	answer := reply{}
	use, err := serve(ctx, r.Run, r.For, files[0])
	if err != nil {
		answer.Error = err.Error()
	}
	if conn.Send(answer) != nil || err != nil {
		return
	}
	go use.tell(ctx, conn)
	for { // until the supervisor is gone
		var ask request
		files, err := conn.Receive(&ask)
		packet.CloseAll(files)
		if err != nil || ask.Used && (use.Final == nil || conn.Send(reply{Used: use.Final()}) != nil) {
			return
		}
	}
}

// tell has the supervisor know what was used, which it would not learn from a cloved that has
// died.
func (u Use) tell(ctx context.Context, conn *packet.Conn) {
	for {
		select {
		case <-u.Changed:
			if conn.Send(reply{SoFar: u.SoFar()}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
