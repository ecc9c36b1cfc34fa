package container

import (
	"io"
	"os"
	"sync"

	"github.com/opencontainers/runc/libcontainer"
)

// streams are this program's ends of what the process reads and writes.
type streams struct {
	handedOver []io.Closer // the process has its own once it started
	ours       []io.Closer
	copying    sync.WaitGroup // the copies of what it writes
}

// connect gives the process its input and output: the caller's own descriptors
// when nobody stays, the engine's console socket, or pipes.
func (c *Container) connect(process *libcontainer.Process, terminal bool, o Start) (*streams, error) {
	s := &streams{}
	switch {
	case terminal:
		connection, socket, err := dial(o.ConsoleSocket)
		if err != nil {
			return nil, err
		}
		process.ConsoleSocket = socket
		s.handedOver = []io.Closer{connection, socket}
		return s, nil
	case o.Detach:
		process.Stdin, process.Stdout, process.Stderr = os.Stdin, os.Stdout, os.Stderr
		return s, nil
	}
	return s, c.connectPipes(s, process)
}

func (c *Container) connectPipes(s *streams, process *libcontainer.Process) error {
	config := c.lib.Config()
	uid, err := config.HostRootUID()
	if err != nil {
		return err
	}
	gid, err := config.HostRootGID()
	if err != nil {
		return err
	}
	pipes, err := process.InitializeIO(uid, gid)
	if err != nil {
		return err
	}
	for _, end := range []any{process.Stdin, process.Stdout, process.Stderr} {
		if file, closes := end.(io.Closer); closes {
			s.handedOver = append(s.handedOver, file)
		}
	}
	s.ours = []io.Closer{pipes.Stdin, pipes.Stdout, pipes.Stderr}
	// Nothing waits for this one: it ends with the caller's input, or with this program.
	go func() {
		_, _ = io.Copy(pipes.Stdin, os.Stdin)
		_ = pipes.Stdin.Close()
	}()
	s.copying.Go(func() { _, _ = io.Copy(os.Stdout, pipes.Stdout) })
	s.copying.Go(func() { _, _ = io.Copy(os.Stderr, pipes.Stderr) })
	return nil
}

// started lets go of the process's ends, so that its end is seen.
func (s *streams) started() {
	for _, end := range s.handedOver {
		_ = end.Close()
	}
	s.handedOver = nil
}

// close waits for what the process still had to say.
func (s *streams) close() {
	s.started()
	s.copying.Wait()
	for _, end := range s.ours {
		_ = end.Close()
	}
}
