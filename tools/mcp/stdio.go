package mcp

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
	"clove.run/clove/tools/link"
)

// pipes is one client at two pipes.
type pipes struct {
	*door
	session *sdk.ServerSession
	ended   chan struct{}
}

// pipes begins to serve a client that writes to in and reads from out, each message a line.
func (s *Server) pipes(d *door, in, out *os.File) (served, error) {
	from, to, err := pollable(in, out)
	if err != nil {
		return nil, err
	}
	session, err := d.server(nil).Connect(context.Background(), &transport{&sdk.IOTransport{Reader: from, Writer: to, MaxLineLength: maxBody}}, nil)
	if err != nil {
		return nil, errors.Join(err, from.Close(), to.Close())
	}
	p := &pipes{door: d, session: session, ended: make(chan struct{})}
	go p.watch(to)
	go func() {
		_ = session.Wait() // its error is that the client has gone
		d.close()
		close(p.ended)
		_ = s.control.Send(link.FromDoor{Ended: d.Name}) // if control is gone, the process ends
	}()
	return p, nil
}

// pollable takes over the files, so that a Close ends a Read of them.
func pollable(in, out *os.File) (from, to *os.File, err error) {
	defer in.Close()
	defer out.Close()
	take := func(file *os.File) (*os.File, error) {
		fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, os.NewSyscallError("fcntl", err)
		}
		return passfd.New(fd)
	}
	if from, err = take(in); err != nil {
		return nil, nil, err
	}
	if to, err = take(out); err != nil {
		from.Close()
	}
	return from, to, err
}

// watch ends the calls in flight of a client that reads no answers any more. One that only writes no more still
// gets those.
func (p *pipes) watch(out *os.File) {
	raw, err := out.SyscallConn()
	if err != nil {
		return
	}
	tried := false
	err = raw.Read(func(uintptr) bool { // waits until the other end has gone, as nothing is ever there to read
		defer func() { tried = true }()
		return tried
	})
	if err == nil {
		p.cancel(func(*request) bool { return true })
		_ = p.session.Close()
	}
}

func (p *pipes) close() {
	p.door.close()
	_ = p.session.Close()
	<-p.ended
}

func (p *pipes) finish() {
	p.leave()
	_ = p.session.Close() // waits for the calls in flight
	<-p.ended
}

// transport bounds the requests of a client that have no answer yet.
type transport struct{ sdk.Transport }

func (t *transport) Connect(ctx context.Context) (sdk.Connection, error) {
	inner, err := t.Transport.Connect(ctx)
	return &bounding{Connection: inner, open: map[jsonrpc.ID]bool{}}, err
}

type bounding struct {
	sdk.Connection

	mu   sync.Mutex          // guards open
	open map[jsonrpc.ID]bool // requests
}

// Read answers a request that is one too many itself: a client that reads no answers is not read then.
func (b *bounding) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := b.Connection.Read(ctx)
		request, is := m.(*jsonrpc.Request)
		if err != nil || !is || !request.IsCall() || b.enter(request.ID) {
			return m, err
		}
		refusal := &jsonrpc.Error{Code: codeBusy, Message: "too many requests are in flight, or one with this id"}
		if err := b.Connection.Write(ctx, &jsonrpc.Response{ID: request.ID, Error: refusal}); err != nil {
			return nil, err
		}
	}
}

func (b *bounding) enter(id jsonrpc.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[id] || len(b.open) >= maxRequests {
		return false
	}
	b.open[id] = true
	return true
}

func (b *bounding) Write(ctx context.Context, m jsonrpc.Message) error {
	err := b.Connection.Write(ctx, m)
	if response, is := m.(*jsonrpc.Response); is {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, response.ID)
	}
	return err
}
