package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/parent"
	"clove.run/clove/internal/packet"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/tools/link"
)

// door is a clove-mcp that serves one client.
type door struct {
	process *parent.Process
	control *packet.Conn
	calls   *channel.Conn
	// The ends of its stdin and stdout: it has no descriptor of the client's, which may be a terminal.
	in  *os.File
	out *os.File
}

// Times of clove-mcp.
const (
	doorReady = 20 * time.Second // from its start until it has no rights left
	doorLast  = 2 * time.Second  // for its last answer to reach the client
)

// openDoor starts clove-mcp for one client.
func openDoor() (d *door, err error) {
	program, err := doorProgram()
	if err != nil {
		return nil, err
	}
	d = &door{}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	var theirs [4]*os.File // its end of the control, stdin, stdout, its end of the calls
	defer func() { packet.CloseAll(theirs[:]) }()
	if d.control, theirs[0], err = packet.Pair(); err != nil {
		return nil, err
	}
	if theirs[1], d.in, err = os.Pipe(); err != nil {
		return nil, err
	}
	if d.out, theirs[2], err = os.Pipe(); err != nil {
		return nil, err
	}
	if d.calls, theirs[3], err = channel.Pair(); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		d.process, err = parent.Start(program, agent.ServiceID(os.Getpid(), 1), theirs[0])
	} else {
		d.process, err = parent.StartOwn(program, theirs[0])
	}
	if err != nil {
		return nil, err
	}
	theirs[0].Close() // else its end would not be seen
	_ = d.control.File().SetReadDeadline(time.Now().Add(doorReady))
	var said link.FromDoor
	if _, err = d.control.Receive(&said); err != nil || !said.Ready {
		return nil, d.failure(err)
	}
	_ = d.control.File().SetReadDeadline(time.Time{})
	err = d.control.Send(link.ToDoor{Stdio: &link.Serve{Name: "stdio", Title: "clove"}}, theirs[1], theirs[2], theirs[3])
	return d, err
}

// close ends clove-mcp. It may be called again.
func (d *door) close() {
	if d.process != nil {
		_ = d.process.Kill()
	}
	for _, f := range []*os.File{d.in, d.out} {
		f.Close()
	}
	if d.control != nil {
		d.control.Close()
	}
	if d.calls != nil {
		d.calls.Close()
	}
}

// failure says how clove-mcp ended, where it did without being asked to.
func (d *door) failure(err error) error {
	_ = d.process.Kill()
	return &agent.Error{Kind: agent.KindInternal, Message: fmt.Sprintf("clove-mcp has ended: %s", d.process.Failure()), Err: err}
}

// throughDoor has the client at stdin and stdout served, until it ends, or ctx does. Its bytes are copied and not
// read: handle gets typed calls.
func (p mcpServer) throughDoor(ctx context.Context, handle channel.Handler) error {
	d, err := openDoor()
	if err != nil {
		return err
	}
	defer d.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- d.calls.Serve(ctx, handle) }()
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(p.out, d.out)
		copied <- err
		cancel() // nothing that it says arrives any more
	}()
	go func() { // it may outlast this function, in a read of the client's
		_, _ = io.Copy(d.in, p.in)
		d.in.Close()
	}()
	ended := make(chan error, 1)
	go func() { ended <- d.awaitEnd() }()
	select {
	case err = <-ended:
		if err == nil {
			select {
			case err = <-copied:
			case <-time.After(doorLast):
			}
		}
	case <-ctx.Done(): // a client that sends a signal waits little for the end
	}
	cancel()
	<-served
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return err
}

// awaitEnd returns when the client has gone, or clove-mcp has.
func (d *door) awaitEnd() error {
	var said link.FromDoor
	for said.Ended == "" {
		if _, err := d.control.Receive(&said); err != nil {
			return d.failure(err)
		}
	}
	return nil
}
