package mcp

import (
	"context"
	"errors"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
	"clove.run/clove/tools/link"
)

// pipes is one client at two pipes.
type pipes struct {
	*door
	server  *Server
	conn    *bounding
	session *sdk.ServerSession
	ended   chan struct{}
}

// pipes makes what serves a client that writes to in and reads from out, each message a line.
func (s *Server) pipes(d *door, in, out *os.File) (served, error) {
	from, to, err := pollable(in, out)
	if err != nil {
		return nil, err
	}
	conn := newBounding(d, from, to)
	session, err := d.server(nil).Connect(context.Background(), conn, nil)
	if err != nil {
		return nil, errors.Join(err, from.Close(), to.Close())
	}
	return &pipes{door: d, server: s, conn: conn, session: session, ended: make(chan struct{})}, nil
}

func (p *pipes) start() {
	go func() {
		_ = p.session.Wait() // its error is that the client has gone
		p.door.close()
		p.server.forget(p.Name, p)
		close(p.ended)
		_ = p.server.control.Send(link.FromDoor{Ended: p.Name}) // if control is gone, the process ends
	}()
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

func (p *pipes) close() {
	p.door.close()
	_ = p.conn.Close() // before: the client may not read
	_ = p.session.Close()
	<-p.ended
}

func (p *pipes) finish() {
	p.leave()
	p.conn.drain()
	_ = p.session.Close()
	<-p.ended
}
