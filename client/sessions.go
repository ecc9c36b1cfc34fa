package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Session is a conversation in both directions. Its methods may be called
// while Answer waits.
type Session struct {
	conn   *rpc.Conn
	room   chan struct{} // of a foreground run: holds one for each input that was not taken yet; else nil
	closed chan struct{} // with room
	close  func()
}

// Open begins a session with its request. Whether it was granted is known from
// Answer, whose result is the row's. Close must be called.
func Open[P, R any](ctx context.Context, c *Client, row api.Row[P, R], params P) (*Session, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := request(ctx, conn, row.Name, params); err != nil {
		conn.Close()
		return nil, lost(err)
	}
	return &Session{conn: conn}, nil
}

// Foreground attaches the caller that started the run with Spec.Foreground: no output is lost, the
// run ends with the session, and once it was granted cloved may end.
func (c *Client) Foreground(ctx context.Context, p api.AttachParams) (*Session, error) {
	p.Foreground = true
	s, err := Open(ctx, c, methods.RunAttach, p)
	if err == nil {
		s.room, s.closed = make(chan struct{}, api.SessionInputs), make(chan struct{})
		s.close = sync.OnceFunc(func() { close(s.closed) })
	}
	return s, err
}

// CopyOut writes a path of a run to to, as a tar archive; of one that has ended, what it made or
// changed there.
func (c *Client) CopyOut(ctx context.Context, ref, path string, to io.Writer) error {
	s, err := Open(ctx, c, methods.RunCopyOut, api.CopyParams{RunParams: api.RunParams{Run: ref}, Path: agent.RawString(path)})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Answer(ctx, nil, func(piece api.SessionOutput) error {
		_, err := to.Write(piece.Data)
		return err
	})
}

// CopyIn unpacks a tar archive in a folder of a live run. When it is refused,
// from may still be read from until it is closed.
func (c *Client) CopyIn(ctx context.Context, ref, path string, from io.Reader) error {
	s, err := Open(ctx, c, methods.RunCopyIn, api.CopyParams{RunParams: api.RunParams{Run: ref}, Path: agent.RawString(path)})
	if err != nil {
		return err
	}
	defer s.Close()
	source, sent := &watched{Reader: from}, make(chan struct{})
	go func() {
		defer close(sent)
		// A goroutine of its own, because cloved may answer with an error before all is
		// sent.
		if _, err := io.Copy(s, source); err == nil {
			_ = s.CloseInput() // the answer says whether it came
		} else if source.err != nil {
			s.Close() // half an archive must not look like a whole one
		}
	}()
	err = s.Answer(ctx, nil, func(api.SessionOutput) error { return nil })
	s.Close() // what is not sent yet was not wanted
	var answered *api.Error
	if err == nil || errors.As(err, &answered) {
		return err // and not wait for a source that may say nothing more
	}
	<-sent
	if source.err != nil {
		return source.err // the session's end only followed from it
	}
	return err
}

// watched keeps the error of its reader, to distinguish it from the writer's: io.Copy
// returns one error for both.
type watched struct {
	io.Reader
	err error
}

// Read notes an error; the end of the archive is none.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// Answer gives every piece of output to each and returns with the session's end.
func (s *Session) Answer(ctx context.Context, result any, each func(api.SessionOutput) error) error {
	return lost(s.conn.Answer(ctx, result, func(m rpc.Message) error {
		if m.Method == api.NoteTaken && s.room != nil {
			select {
			case <-s.room:
			default: // one more than was sent: ignored
			}
		}
		if m.Method != api.NoteOutput {
			return nil
		}
		var piece api.SessionOutput
		if err := json.Unmarshal(m.Params, &piece); err != nil {
			return err
		}
		return each(piece)
	}, fault))
}

// Write sends input; it blocks while the process reads none of what was sent.
func (s *Session) Write(data []byte) (int, error) {
	if err := s.await(); err != nil {
		return 0, err
	}
	if err := s.conn.Notify(api.NoteInput, api.SessionInput{Data: data}); err != nil {
		return 0, err
	}
	return len(data), nil
}

// await waits for room in a foreground run's input.
func (s *Session) await() error {
	if s.room == nil {
		return nil
	}
	select {
	case s.room <- struct{}{}:
		return nil
	case <-s.closed:
		return net.ErrClosed
	}
}

// CloseInput ends the input.
func (s *Session) CloseInput() error {
	if err := s.await(); err != nil {
		return err
	}
	return s.conn.Notify(api.NoteCloseInput, api.Nothing{})
}

// Signal passes a signal on to the supervisor of a foreground run: HUP, INT,
// QUIT, TERM, USR1 or USR2. The third INT kills the agent.
func (s *Session) Signal(number syscall.Signal) error {
	return s.conn.Notify(api.NoteSignal, api.SessionSignal{Signal: int(number)})
}

// CloseOutput reports that stdout or stderr of a foreground run is not read any more: the
// agent gets EPIPE there.
func (s *Session) CloseOutput(stream string) error {
	return s.conn.Notify(api.NoteCloseOutput, api.SessionStream{Stream: stream})
}

// Resize sends the size of the caller's terminal.
func (s *Session) Resize(size api.SessionSize) error { return s.conn.Notify(api.NoteResize, size) }

// Detach leaves an attached run, which goes on; Answer returns with what was
// written until then.
func (s *Session) Detach() error { return s.conn.Notify(api.NoteDetach, api.Nothing{}) }

// Close ends the session, whatever the other side thinks of it.
func (s *Session) Close() error {
	if s.close != nil {
		s.close()
	}
	return s.conn.Close()
}
