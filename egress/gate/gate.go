package gate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/kernel/socket"
)

// Confine is called once, after the Setup and before any byte of the agent is read, with
// the descriptors of the sockets that send to addresses.
type Confine func(addressed []int) error

// server is one gate.
type server struct {
	broker         *broker
	limits         *limits
	waits          waits
	refusals       *refusals
	queries        *queries
	flows          *flows
	named          *named
	dnsConnections *dnsConnections
	agent          *socket.Server // nil: the agent has no socket of its own
	closing        sync.Once
	done           chan struct{}

	mu        sync.Mutex // guards the fields below
	spare     *os.File   // a descriptor in reserve, see shed
	listeners []interface{ Close() error }
}

// Serve receives the setup and serves until the channel ends; then it returns nil. It
// closes what it opened. Connections in progress end with the process only, so the caller
// must exit.
func Serve(conn *wire.Conn, confine Confine) error {
	first, err := conn.ReceiveAnswer()
	if err != nil {
		return fmt.Errorf("cannot receive the setup: %w", err)
	}
	if first.Setup == nil || len(first.Setup.Listeners) != len(first.Files) {
		closeFiles(first.Files)
		return errors.New("cannot serve: the first message is no setup, or lacks sockets")
	}
	s, err := newServer(conn, first.Setup.Limits)
	if err != nil {
		closeFiles(first.Files)
		return err
	}
	return s.serve(first.Setup.Listeners, first.Files, confine)
}

// serve confines the process before it starts any goroutine that reads the agent's data.
func (s *server) serve(listeners []wire.Listener, files []*os.File, confine Confine) error {
	defer s.close()
	starts, err := s.prepare(listeners, files)
	if err != nil {
		return err
	}
	if err := confine(s.addressed()); err != nil {
		return fmt.Errorf("cannot confine the gate: %w", err)
	}
	// After the confinement: clove lets the agent start when it has this message.
	if err := s.broker.conn.SendRequest(wire.Request{Ready: &wire.Ready{}}); err != nil {
		return err
	}
	for _, start := range starts {
		go start()
	}
	var reporting sync.WaitGroup
	reporting.Go(func() { s.refusals.report(s.done) })
	err = s.broker.receive()
	s.close()
	reporting.Wait()
	s.flows.reportOpen()
	return err
}

// newServer makes all shared state before any goroutine starts.
func newServer(conn *wire.Conn, configured wire.Limits) (*server, error) {
	limits, err := newLimits(configured)
	if err != nil {
		return nil, err
	}
	s := &server{limits: limits, waits: clientWaits(), done: make(chan struct{})}
	s.broker = newBroker(conn, s.done)
	s.refusals = newRefusals(conn)
	s.queries = newQueries()
	s.flows = newFlows(s.broker, limits, s.refusals)
	s.named = newNamed()
	s.dnsConnections = &dnsConnections{}
	return s, nil
}

// prepare makes the function that serves each descriptor. It owns the files. The functions
// of package net duplicate the descriptors, so the files are closed at the end.
func (s *server) prepare(listeners []wire.Listener, files []*os.File) ([]func(), error) {
	defer closeFiles(files)
	starts := make([]func(), 0, len(files))
	for i, listener := range listeners {
		start, err := s.prepareOne(listener, files[i])
		if err != nil {
			return nil, fmt.Errorf("cannot use %s socket: %w", listener.Kind, err)
		}
		starts = append(starts, start)
	}
	return starts, nil
}

// prepareOne fails on an unknown kind: a listener that nothing serves would accept
// connections for ever.
func (s *server) prepareOne(l wire.Listener, file *os.File) (func(), error) {
	switch l.Kind {
	case wire.ListenTCP:
		return s.stream(file, s.agentConnection)
	case wire.ListenDNSTCP:
		return s.dnsStream(file)
	case wire.ListenPublish:
		return s.stream(file, func(c *net.TCPConn) { s.publishedConnection(c, l.Port) })
	case wire.ListenHostPort:
		return s.stream(file, func(c *net.TCPConn) { s.hostPortConnection(c, l.Port) })
	case wire.ListenUDP:
		return s.datagrams(file, s.serveFlows)
	case wire.ListenDNSUDP:
		return s.datagrams(file, s.serveDNS)
	case wire.ListenCalls:
		return s.agentCalls(file, l.IDs)
	case wire.ListenAgent:
		return s.agentSocket(file)
	}
	return nil, errors.New("unknown kind")
}

// stream prepares a TCP listener whose connections count towards the limits.
func (s *server) stream(file *os.File, handle func(*net.TCPConn)) (func(), error) {
	listener, err := s.listener(file)
	if err != nil {
		return nil, err
	}
	return func() {
		s.accept(listener, s.limits, func(conn *net.TCPConn) {
			s.limits.limitBuffers(conn)
			handle(conn)
		})
	}, nil
}

// listener turns a file into a listener. The first one also supplies the spare descriptor,
// because the gate can open no file of its own.
func (s *server) listener(file *os.File) (*net.TCPListener, error) {
	any, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	listener, ok := any.(*net.TCPListener)
	if !ok {
		any.Close()
		return nil, errors.New("it is not a TCP listener")
	}
	s.keep(listener)
	if s.spare == nil {
		if s.spare, err = listener.File(); err != nil {
			return nil, err
		}
	}
	return listener, nil
}

// datagrams prepares a UDP socket that reports each datagram's original destination.
func (s *server) datagrams(file *os.File, serve func(*net.UDPConn)) (func(), error) {
	any, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	conn, ok := any.(*net.UDPConn)
	if !ok {
		any.Close()
		return nil, errors.New("it is not a UDP socket")
	}
	s.keep(conn)
	if err := wantDestination(conn); err != nil {
		return nil, err
	}
	return func() { serve(conn) }, nil
}

// wantDestination turns on IP_RECVORIGDSTADDR (ip(7)) for both families, because an IPv6
// socket may accept IPv4 too.
func wantDestination(conn *net.UDPConn) error {
	return descriptor.Use(conn, func(fd int) error {
		err4 := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVORIGDSTADDR, 1)
		err6 := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_RECVORIGDSTADDR, 1)
		if err4 != nil && err6 != nil {
			return errors.Join(err4, err6)
		}
		return nil
	})
}

// keep remembers a listener for close.
func (s *server) keep(listener interface{ Close() error }) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener)
}

// addressed lists the descriptors of sockets that send to addresses, and that of the
// agent's calls: all that need sendmsg(2). The caller's filter forbids it on all others.
func (s *server) addressed() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	fds := []int{}
	for _, listener := range s.listeners {
		switch conn := listener.(type) {
		case *net.UDPConn:
			_ = descriptor.Use(conn, func(fd int) error { fds = append(fds, fd); return nil }) // it is open
		case *channel.Conn:
			_ = descriptor.Use(conn.File(), func(fd int) error { fds = append(fds, fd); return nil })
		}
	}
	return fds
}

func (s *server) close() { s.closing.Do(s.closeAll) }

// closeAll ends the goroutines that wait for done, and those that accept or receive.
func (s *server) closeAll() {
	close(s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, listener := range s.listeners {
		listener.Close()
	}
	if s.spare != nil {
		s.spare.Close()
	}
}

func closeFiles(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
