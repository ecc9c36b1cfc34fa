package host

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
	"clove.run/clove/internal/beneath"
)

// dial connects from the container's network namespace.
func (g *guard) dial(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
	return dialBy(ctx, g.namespace.Socket, network, server)
}

// resolver queries the servers that the engine gave the container, from the container's
// namespace, so that the engine's own rules for them apply.
func (g *guard) resolver(servers []netip.AddrPort) *resolver.Resolver {
	return resolver.New(resolver.Config{Servers: servers, Dial: g.dial, NoFiles: true})
}

// hostResolvConfs are the host's own: the second where systemd's stub is in the first.
var hostResolvConfs = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// servers are those of the container's resolv.conf at its start, if neither image nor
// container can have written it: a name server chooses the addresses of every allowed name,
// so the container must not choose the server. Else they are the host's. Docker's own
// resolver listens on a loopback address and forwards through sockets in the container's
// namespace, which no rule can tell from the container's own; it is replaced by the servers
// that it forwards to, the host's. Decision 36 (docs/decisions) has the reasons.
func (g *guard) servers() ([]netip.AddrPort, error) {
	root, err := os.Open(fmt.Sprintf("/proc/%d/root", g.order.PID))
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

// serversOf returns the servers of a container's file. The host's replace those at a
// loopback address.
func serversOf(text string, host ...string) []netip.AddrPort {
	all := resolver.ServersOf(text)
	servers := slices.DeleteFunc(slices.Clone(all), isLoopback)
	if len(servers) == len(all) {
		return servers
	}
	return append(servers, hostServers(host...)...)
}

// hostServers returns the servers of the first file that has any outside of loopback.
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

// resolvConfOf is the container's file, with links resolved inside its root, and
// whether given accepts it. The image chooses what is at that path: a device or a
// pipe, whose opening or reading could block, counts as no file.
func resolvConfOf(root *os.File, given func(root, file *os.File) (bool, error)) (text string, ok bool, err error) {
	const path = "etc/resolv.conf"
	file, err := beneath.Open(root, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
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

// isGiven reports whether only the engine can have written a file: it is on a mount of its
// own, which is read-only. A writable one may have what the container wrote before it was
// started again.
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

// mountOf is the id of the mount that the file was opened on. Device numbers would not do:
// two mounts may show one file system.
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
