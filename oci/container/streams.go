package container

import (
	"io"
	"os"
	"sync"

	"github.com/opencontainers/runc/libcontainer"
)

// streams are this program's ends of what the process reads and writes.
type streams struct {
	handedOver []io.Closer // closed after the start: the process has its own
	ours       []io.Closer
	terminal   *terminal      // nil: none in the foreground
	copying    sync.WaitGroup // the goroutines that copy the process's output
}

// connect gives the process its input and output. Detached with a terminal, the engine's
// console socket gets the master. In the foreground with a terminal, this program shows it
// in the caller's. Detached without one, the process inherits the caller's descriptors. In
// the foreground without one, this program copies between pipes.
func (c *Container) connect(process *libcontainer.Process, wanted bool, o Start) (s *streams, err error) {
	s = &streams{}
	switch {
	case wanted && o.Detach:
		connection, socket, err := dial(o.ConsoleSocket)
		if err != nil {
			return nil, err
		}
		process.ConsoleSocket = socket
		s.handedOver = []io.Closer{connection, socket}
		return s, nil
	case wanted:
		if s.terminal, process.ConsoleSocket, err = newTerminal(process); err != nil {
			return nil, err
		}
		s.handedOver = []io.Closer{process.ConsoleSocket}
		return s, nil
	case o.Detach:
		process.Stdin, process.Stdout, process.Stderr = os.Stdin, os.Stdout, os.Stderr
		return s, nil
	}
	return s, c.connectPipes(s, process)
}

// connectPipes makes pipes that belong to the container's root on the host, so that a
// process inside may open them again through /dev/stdout.
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
	// Nothing waits for this goroutine: it ends with the caller's input, or with this
	// program.
	go func() {
		_, _ = io.Copy(pipes.Stdin, os.Stdin)
		_ = pipes.Stdin.Close()
	}()
	s.copying.Go(func() { drain(os.Stdout, pipes.Stdout) })
	s.copying.Go(func() { drain(os.Stderr, pipes.Stderr) })
	return nil
}

// drain copies until either end is closed. It then closes the reading end, so that the
// process gets SIGPIPE: it would otherwise wait for ever for room in a pipe that no
// process reads.
func drain(to io.Writer, from io.ReadCloser) {
	_, _ = io.Copy(to, from)
	_ = from.Close()
}

// started closes this program's copies of the process's ends, so that the end of the
// process is seen as the end of its output, and takes over its terminal.
func (s *streams) started() error {
	s.release()
	if s.terminal == nil {
		return nil
	}
	if err := s.terminal.attach(); err != nil {
		return err
	}
	s.copying.Go(s.terminal.pump)
	return nil
}

// release may be called again: close calls it after a start that failed.
func (s *streams) release() {
	for _, end := range s.handedOver {
		_ = end.Close()
	}
	s.handedOver = nil
}

func (s *streams) resize() {
	if s.terminal != nil {
		s.terminal.resize()
	}
}

// close waits for output that is still in the pipes or the terminal.
func (s *streams) close() {
	s.release()
	if s.terminal != nil {
		s.terminal.stop()
		defer s.terminal.close()
	}
	s.copying.Wait()
	for _, end := range s.ours {
		_ = end.Close()
	}
}
