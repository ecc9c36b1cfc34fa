package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/daemon/logs"
	"clove.run/clove/runtime"
)

// The names of the agent's output streams.
const (
	stdout = "stdout"
	stderr = "stderr"
)

// streams stand where the user's are in the foreground: pipes, or a pty, whose
// other ends go to the log and to the hub.
type streams struct {
	io     runtime.IO
	input  *os.File      // our end of the agent's input; nil: it has none
	typing chan struct{} // holds one while a session writes to input
	master *os.File      // of the pty; nil: pipes
	ours   []*os.File    // our ends of pipes, for close
	theirs []*os.File    // closed when the run is over, which ends the pumps
	pumps  sync.WaitGroup
}

// openStreams makes the ends that runtime gets. Without keepStdin the agent
// reads the end of a file at once.
func openStreams(terminal, keepStdin bool, sink func(stream string) io.Writer) (*streams, error) {
	s := &streams{typing: make(chan struct{}, 1)}
	var err error
	if terminal {
		err = s.openTerminal(keepStdin, sink)
	} else {
		err = s.openPipes(keepStdin, sink)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("cannot make the agent's streams: %w", err)
	}
	return s, nil
}

// openPipes makes a pipe for each output, and for the input if sessions may type.
func (s *streams) openPipes(keepStdin bool, sink func(string) io.Writer) (err error) {
	if keepStdin {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		s.io.Stdin, s.input = r, w
		s.theirs, s.ours = append(s.theirs, r), append(s.ours, w)
	} else if s.io.Stdin, err = os.Open(os.DevNull); err != nil {
		return err
	} else {
		s.theirs = append(s.theirs, s.io.Stdin)
	}
	for _, stream := range []struct {
		name string
		end  **os.File
	}{{stdout, &s.io.Stdout}, {stderr, &s.io.Stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		*stream.end = w
		s.theirs = append(s.theirs, w)
		s.pump(r, sink(stream.name))
	}
	return nil
}

// endWith has the agent read some bytes from its standard input, then those of a file, empty: none, and then its end.
func (s *streams) endWith(input []byte, content string) error {
	all := []io.Reader{bytes.NewReader(input)}
	var file *os.File
	if content != "" {
		var err error
		if file, err = os.Open(content); err != nil {
			return err
		}
		all = append(all, file)
	}
	r, w, err := os.Pipe()
	if err != nil {
		file.Close()
		return err
	}
	s.io.Stdin, s.theirs = r, append(s.theirs, r)
	go func() {
		_, _ = io.Copy(w, io.MultiReader(all...)) // an agent that ends does not read the rest
		w.Close()
		file.Close()
	}()
	return nil
}

// openTerminal makes a pty of our own: runtime treats its slave as the user's
// terminal, and follows its size. Without keepStdin it
// gets no input.
func (s *streams) openTerminal(keepStdin bool, sink func(string) io.Writer) error {
	master, slave, err := openPTY()
	if err != nil {
		return err
	}
	s.master = master
	if keepStdin {
		s.input = master
	}
	s.io.Stdin, s.io.Stdout, s.io.Stderr = slave, slave, slave
	s.theirs = append(s.theirs, slave)
	s.pump(master, sink(stdout))
	return nil
}

// resize gives the pty a size and signals runtime as a terminal would.
func (s *streams) resize(size api.SessionSize) error {
	if s.master == nil {
		return nil
	}
	window := &unix.Winsize{Row: size.Rows, Col: size.Columns}
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, window); err != nil {
		return err
	}
	// Runtime has only the slave, and asks for its size at SIGWINCH, as at a user's
	// terminal.
	return unix.Kill(unix.Getpid(), unix.SIGWINCH)
}

// fit is resize where the caller has a window. A size that does not fit is no reason to
// refuse the caller.
func (s *streams) fit(size *api.SessionSize) {
	if size != nil {
		_ = s.resize(*size)
	}
}

// pump ends when the last writer is gone. A pty then says EIO.
func (s *streams) pump(from *os.File, to io.Writer) {
	s.pumps.Go(func() {
		defer from.Close()
		buffer := make([]byte, pipeRead)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				// Else logs and hubs never fail. Runtime meets the same error then, as
				// it would at a pipe of the user's, and so does the agent.
				if _, werr := to.Write(buffer[:n]); errors.Is(werr, unix.EPIPE) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
}

// close gives up every end and waits for what was written.
func (s *streams) close() {
	for _, f := range s.theirs {
		f.Close()
	}
	s.pumps.Wait()
	for _, f := range s.ours {
		f.Close()
	}
}

// give types data for a caller, until ctx ends: an agent that does not read
// must not hold a caller that has gone. One caller types at a time.
func (s *streams) give(ctx context.Context, data []byte) {
	if s.input == nil {
		return
	}
	select {
	case s.typing <- struct{}{}:
		defer func() { <-s.typing }()
	case <-ctx.Done():
		return
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = s.input.SetWriteDeadline(time.Now()) // ends the write
		close(ended)
	})
	_, _ = s.input.Write(data) // the agent may have closed it
	// The function has run or runs: the deadline must be set before it is reset.
	if !stop() {
		<-ended
		_ = s.input.SetWriteDeadline(time.Time{}) // for the next caller
	}
}

// closeInput lets the agent read the end of its input.
func (s *streams) closeInput() {
	if s.input == nil {
		return
	}
	if s.master != nil {
		// A pty cannot be closed in one direction. The byte goes on to the agent's own
		// terminal, which takes it for the end of input.
		_, _ = s.input.Write([]byte{endOfFile})
		return
	}
	s.input.Close()
}

// endOfFile is what a terminal takes for the end of input (VEOF, termios(3)).
const endOfFile = 0x04

// logAndHub is where an agent's stream goes.
func logAndHub(lines *logs.Lines, h *hub, stream string) io.Writer {
	return io.MultiWriter(lines, hubWriter{h, stream})
}
