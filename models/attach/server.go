package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/packet"
)

// Serve is what serves a run's agent until ctx ends.
type Serve func(ctx context.Context, run agent.ID, listener *os.File) (Use, error)

// Use is what the calls of a run use.
type Use struct {
	Final   func() []agent.ModelUse // at the agent's end
	SoFar   func() []agent.ModelUse
	Changed <-chan struct{} // a value behind each change of SoFar; nil: it does not change
}

// Listen makes the socket in a run directory. A socket that a dead cloved left is replaced.
func Listen(runDir string) (*net.UnixListener, error) {
	path := filepath.Join(runDir, Socket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	dir, err := os.Open(runDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), Socket)
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: short, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then the descriptor of the directory has another meaning
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Accept serves supervisors until the listener closes.
func Accept(ctx context.Context, l *net.UnixListener, serve Serve) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		go attend(ctx, conn, serve)
	}
}

// attend serves one run for as long as its supervisor holds the connection.
func attend(ctx context.Context, c *net.UnixConn, serve Serve) {
	file, err := c.File()
	c.Close()
	if err != nil {
		return
	}
	conn := packet.New(file)
	defer conn.Close()
	if !isOwn(file) {
		return
	}
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
	use, err := serve(ctx, r.Run, files[0])
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
		if err != nil || ask.Used && conn.Send(reply{Used: use.Final()}) != nil {
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

// isOwn reports whether the user of this process, root, is at the other end: the mode of the
// socket says so already.
func isOwn(file *os.File) bool {
	raw, err := file.SyscallConn()
	own := false
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
			own = err == nil && peer.Uid == uint32(os.Geteuid())
		})
	}
	return own
}
