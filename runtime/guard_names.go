package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/broker"
	"clove.run/clove/egress/resolver"
)

// dial connects from inside of the container's namespace.
func (g *guard) dial(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
	version := "4"
	if server.Addr().Is6() {
		version = "6"
	}
	file, err := broker.Dial(ctx, g.namespace.Socket, network+version, server)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileConn(file)
}

// resolver asks the servers that the engine gave the container, from inside, so
// that what the engine says of them holds.
func (g *guard) resolver(servers []netip.AddrPort) *resolver.Resolver {
	return resolver.New(resolver.Config{Servers: servers, Dial: g.dial})
}

// servers are those of the container's resolv.conf at its start. Docker's own
// resolver, at an address of loopback, would ask on from inside by sockets that
// no rule can tell from the container's; in its place stand the servers that it
// asks itself, which are the host's.
func (g *guard) servers() ([]netip.AddrPort, error) {
	root, err := os.Open(fmt.Sprintf("/proc/%d/root", g.PID))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := resolvConfOf(root)
	if err != nil {
		return nil, err
	}
	return serversOf(text, "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"), nil
}

// serversOf are those of a container's file; instead of each that is at an
// address of loopback stand those of the first of the host's files that has others.
func serversOf(text string, host ...string) []netip.AddrPort {
	all := resolver.ServersOf(text)
	servers := slices.DeleteFunc(slices.Clone(all), isLoopback)
	if len(servers) == len(all) {
		return servers
	}
	for _, path := range host {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the next one, or no names
		}
		if others := slices.DeleteFunc(resolver.ServersOf(string(text)), isLoopback); len(others) > 0 {
			return append(servers, others...)
		}
	}
	return servers
}

func isLoopback(server netip.AddrPort) bool { return server.Addr().IsLoopback() }

// resolvConfBytes is more than any engine writes.
const resolvConfBytes = 64 << 10

// resolvConfOf is the container's file, as its links lead inside; "" where there
// is none. An image chooses what lies there: a device or a pipe is none.
func resolvConfOf(root *os.File) (string, error) {
	const path = "etc/resolv.conf"
	file, err := openBeneath(root, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the container's resolv.conf: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(file, resolvConfBytes))
	return string(text), err
}
