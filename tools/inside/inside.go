package inside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/packet"
	"clove.run/clove/tools"
)

// Socket is the name of the socket, in a run's directory.
const Socket = "tools.sock"

// request has a program run, with three descriptors: its stdin, stdout and stderr.
type request struct {
	Exec agent.Exec `json:"exec"`
}

// reply is how it ended.
type reply struct {
	ExitCode int        `json:"exit_code"`
	Error    *api.Error `json:"error,omitempty"` // it never ran, or was ended at its time limit
}

// Exec runs a program in the sandbox, as (*runtime.Live).Exec does.
type Exec func(ctx context.Context, e agent.Exec, stdin, stdout, stderr *os.File) (exitCode int, err error)

// Listen makes the socket in a run's directory.
func Listen(dir string) (*net.UnixListener, error) { return packet.Listen(filepath.Join(dir, Socket)) }

// Serve serves until the listener closes, or ctx ends, which ends the programs. It returns behind the
// last of them.
func Serve(ctx context.Context, l *net.UnixListener, exec Exec) {
	var all sync.WaitGroup
	defer all.Wait()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := packet.Accept(l)
		if err != nil {
			return
		}
		all.Go(func() { attend(ctx, conn, exec) })
	}
}

// attend runs one program.
func attend(ctx context.Context, conn *packet.Conn, exec Exec) {
	defer conn.Close()
	var r request
	files, err := conn.Receive(&r)
	defer func() { packet.CloseAll(files) }()
	if err != nil || len(files) != 3 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		var none struct{}
		more, _ := conn.Receive(&none) // an honest caller sends no more: this is its end
		packet.CloseAll(more)
	}()
	code, err := exec(ctx, r.Exec, files[0], files[1], files[2])
	packet.CloseAll(files) // the caller reads the end of the output before the reply
	files = nil
	answer := reply{ExitCode: code}
	if err != nil {
		answer.Error = api.ErrorOf(err)
	}
	_ = conn.Send(answer) // a caller that is gone needs none
}

// Output is where a program writes.
type Output = tools.Output

// Run runs a program in the sandbox of the run with this directory, and returns its exit status. An
// error says that it never ran, or was ended: by ctx, whose cause it is, or because the run ended. It
// returns when the program has ended. errors.Is(err, fs.ErrNotExist): there is no sandbox in which tools run.
func Run(ctx context.Context, dir string, e agent.Exec, stdin []byte, out Output) (exitCode int, err error) {
	s, err := start(dir, e)
	if err != nil {
		return 0, err
	}
	return s.run(ctx, stdin, out)
}

// started is a program that waits for its stdin.
type started struct {
	conn  *packet.Conn
	pipes pipes
	ended chan ending // has a value when it has ended
}

type ending struct {
	reply reply
	err   error
}

// start has a program started, and does not wait for that.
func start(dir string, e agent.Exec) (*started, error) {
	conn, err := packet.Dial(filepath.Join(dir, Socket))
	if err != nil {
		return nil, fmt.Errorf("cannot reach the sandbox: %w", err)
	}
	p, err := newPipes()
	if err == nil {
		err = conn.Send(request{Exec: e}, p.theirs[:]...)
		packet.CloseAll(p.theirs[:])
		if err != nil {
			packet.CloseAll(p.own[:])
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	s := &started{conn: conn, pipes: p, ended: make(chan ending, 1)}
	go func() {
		var r reply
		files, err := conn.Receive(&r)
		packet.CloseAll(files)
		s.ended <- ending{r, err}
	}()
	return s, nil
}

// endTime bounds the wait for a program that was asked to end, beyond the grace of its run.
const endTime = time.Minute

// run gives a program its stdin, and waits for its end.
func (s *started) run(ctx context.Context, stdin []byte, out Output) (exitCode int, err error) {
	defer s.conn.Close()
	wait := s.pipes.carry(stdin, out)
	var end ending
	select {
	case end = <-s.ended:
	case <-ctx.Done():
		_ = s.conn.CloseSend() // ends it
		timer := time.AfterFunc(endTime, func() { s.conn.Close() })
		end = <-s.ended
		timer.Stop()
	}
	if end.err != nil { // then the program's ends close late, or never
		packet.CloseAll(s.pipes.own[:])
	}
	wait()
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.Is(end.err, io.EOF):
		return 0, api.Failure(api.CodeConflict, "", "the run ended meanwhile")
	case end.err != nil:
		return 0, end.err
	case end.reply.Error != nil:
		return end.reply.ExitCode, end.reply.Error
	}
	return end.reply.ExitCode, nil
}

// drop ends a program that gets no stdin.
func (s *started) drop() {
	packet.CloseAll(s.pipes.own[:])
	s.conn.Close()
}

// pipes are those of one program: stdin, stdout and stderr.
type pipes struct{ own, theirs [3]*os.File }

func newPipes() (p pipes, err error) {
	for i := range p.own {
		read, write, err := os.Pipe()
		if err != nil {
			packet.CloseAll(p.own[:i])
			packet.CloseAll(p.theirs[:i])
			return p, err
		}
		p.own[i], p.theirs[i] = read, write
		if i == 0 {
			p.own[i], p.theirs[i] = write, read
		}
	}
	return p, nil
}

// carry copies beside its caller. wait returns when all is copied.
func (p pipes) carry(stdin []byte, out Output) (wait func()) {
	var all sync.WaitGroup
	all.Go(func() {
		_, _ = io.Copy(p.own[0], bytes.NewReader(stdin)) // a program may read less
		p.own[0].Close()
	})
	for i, to := range []io.Writer{out.Stdout, out.Stderr} {
		all.Go(func() {
			_, _ = io.Copy(to, p.own[i+1]) // ends with the program's end of it
			p.own[i+1].Close()
		})
	}
	return all.Wait
}
