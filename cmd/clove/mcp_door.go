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

// door is a clove-mcp.
type door struct {
	process *parent.Process
	control *packet.Conn
	calls   *channel.Conn
	// The ends of the pipes of one client: it has no descriptor of the client's, which may be a terminal.
	in  *os.File
	out *os.File
}

// Times of clove-mcp.
const (
	doorReady = 20 * time.Second // from its start until it has no rights left
	doorLast  = 2 * time.Second  // for its last answer to reach the client
)

// openDoor starts clove-mcp.
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
	control, theirs, err := packet.Pair()
	if err != nil {
		return d, err
	}
	d.control = control
	defer theirs.Close() // else its end would not be seen
	if os.Geteuid() == 0 {
		d.process, err = parent.Start(program, agent.ServiceID(os.Getpid(), 1), theirs)
	} else {
		d.process, err = parent.StartOwn(program, theirs)
	}
	if err != nil {
		return d, err
	}
	_ = control.File().SetReadDeadline(time.Now().Add(doorReady))
	var said link.FromDoor
	if _, err = control.Receive(&said); err != nil || !said.Ready {
		err = d.failure(err)
		return d, err
	}
	return d, control.File().SetReadDeadline(time.Time{})
}

// serve has it serve what order says, with the descriptors of files, which are closed, and a new channel.
func (d *door) serve(order link.ToDoor, files ...*os.File) error {
	defer packet.CloseAll(files)
	calls, theirs, err := channel.Pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	d.calls = calls
	return d.control.Send(order, append(files, theirs)...)
}

// servePipes has the client at two pipes served.
func (d *door) servePipes() error {
	in, write, err := os.Pipe()
	if err != nil {
		return err
	}
	d.in = write
	read, out, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	d.out = read
	return d.serve(link.ToDoor{Stdio: &link.Serve{Name: "stdio", Title: "clove"}}, in, out)
}

// close ends clove-mcp. It may be called again.
func (d *door) close() {
	if d.process != nil {
		_ = d.process.Kill()
	}
	packet.CloseAll([]*os.File{d.in, d.out}) // where there are none, nothing happens
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
	if err := d.servePipes(); err != nil {
		return err
	}
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
