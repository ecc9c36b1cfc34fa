package gate

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/kernel/socket"
)

// agentCalls takes the channel of the agent's calls. Its end is the supervisor's.
func (s *server) agentCalls(file *os.File, ids *wire.IDs) (func(), error) {
	if ids == nil || s.agent != nil {
		return nil, errors.New("it names no ids, or is the second one")
	}
	var own *os.File
	err := descriptor.Use(file, func(fd int) error {
		fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err == nil {
			own, err = passfd.New(fd)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	calls := channel.New(own)
	s.keep(calls)
	s.agent = socket.New(calls, ids.First, ids.Count)
	return func() { _ = s.agent.Receive(); s.close() }, nil // without answers the socket must not seem to work
}

// agentSocket serves the agent's own socket.
func (s *server) agentSocket(file *os.File) (func(), error) {
	any, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	listener, ok := any.(*net.UnixListener)
	if !ok || s.agent == nil {
		any.Close()
		return nil, errors.New("it is not a Unix listener behind its channel")
	}
	s.keep(listener)
	return func() { s.agent.Accept(listener) }, nil
}
