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

	"clove.run/clove/egress/resolver"
)

// dial connects from inside of the container's namespace.
func (g *guard) dial(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
	return dialBy(ctx, g.namespace.Socket, network, server)
}

// resolver asks the servers that the engine gave the container, from inside, so
// that what the engine says of them holds.
func (g *guard) resolver(servers []netip.AddrPort) *resolver.Resolver {
	return resolver.New(resolver.Config{Servers: servers, Dial: g.dial, NoFiles: true})
}

// hostResolvConfs are the host's own: the second where systemd's stub is in the first.
var hostResolvConfs = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// servers are those of the container's resolv.conf at its start, if neither image
// nor container can have written it: who answers for an allowed name says where it
// leads. Else they are the host's. Docker's own resolver, at an address of loopback,
// would ask on from inside by sockets that no rule can tell from the container's; in
// its place stand the servers that it asks itself, which are the host's.
func (g *guard) servers() ([]netip.AddrPort, error) {
	root, err := os.Open(fmt.Sprintf("/proc/%d/root", g.PID))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, given, err := resolvConfOf(root, isGiven)
	if err != nil {
		return nil, err
	}
	if !given {
		return hostServers(hostResolvConfs...), nil
	}
	return serversOf(text, hostResolvConfs...), nil
}

// serversOf are those of a container's file; instead of those that are at an
// address of loopback stand the host's.
func serversOf(text string, host ...string) []netip.AddrPort {
	all := resolver.ServersOf(text)
	servers := slices.DeleteFunc(slices.Clone(all), isLoopback)
	if len(servers) == len(all) {
		return servers
	}
	return append(servers, hostServers(host...)...)
}

// hostServers are those of the first file that has some that are not at an
// address of loopback.
func hostServers(paths ...string) []netip.AddrPort {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the next one, or no names
		}
		if servers := slices.DeleteFunc(resolver.ServersOf(string(text)), isLoopback); len(servers) > 0 {
			return servers
		}
	}
	return nil
}

func isLoopback(server netip.AddrPort) bool { return server.Addr().IsLoopback() }

// resolvConfBytes is more than any engine writes.
const resolvConfBytes = 64 << 10

// resolvConfOf is the container's file, as its links lead inside, and whether it is
// one that given takes. An image chooses what lies there: a device or a pipe is none.
func resolvConfOf(root *os.File, given func(root, file *os.File) (bool, error)) (text string, ok bool, err error) {
	const path = "etc/resolv.conf"
	file, err := openBeneath(root, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("cannot read the container's resolv.conf: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false, err
	}
	if ok, err := given(root, file); err != nil || !ok {
		return "", false, err
	}
	all, err := io.ReadAll(io.LimitReader(file, resolvConfBytes))
	return string(all), err == nil, err
}

// isGiven tells whether a file is the engine's and stays so: it lies on a mount of
// its own, which is read-only. One that may be written has what the container left
// in it before it was started again.
func isGiven(root, file *os.File) (bool, error) {
	var mount unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &mount); err != nil {
		return false, &os.PathError{Op: "fstatfs", Path: file.Name(), Err: err}
	}
	its, err := mountOf(file)
	if err != nil {
		return false, err
	}
	images, err := mountOf(root)
	return mount.Flags&unix.ST_RDONLY != 0 && its != images, err
}

func mountOf(file *os.File) (uint64, error) {
	var about unix.Statx_t
	err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &about)
	if err == nil && about.Mask&unix.STATX_MNT_ID == 0 {
		err = unix.EOPNOTSUPP // before Linux 5.8
	}
	if err != nil {
		return 0, &os.PathError{Op: "statx", Path: file.Name(), Err: err}
	}
	return about.Mnt_id, nil
}
