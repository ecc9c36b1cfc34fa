package packet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
)

// Listen makes a socket at a path for processes of this process's user alone. What a dead process left
// there is replaced. The path may be longer than an address of a socket.
func Listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: short(dir, path), Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then the descriptor of the directory has another meaning
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Accept waits for a channel of a process of this process's own user; it refuses others. The error is
// the listener's.
func Accept(l *net.UnixListener) (*Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		file, err := c.File()
		c.Close()
		if err != nil {
			continue
		}
		if isOwn(file) {
			return New(file), nil
		}
		file.Close()
	}
}

// Dial connects to what Listen made.
func Dial(path string) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: short(dir, path)})
		dir.Close()
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	file, err := passfd.New(fd)
	if err != nil {
		return nil, err
	}
	return New(file), nil
}

// short is a path below an open directory that fits into sockaddr_un.
func short(dir *os.File, path string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
}

// isOwn reports whether the user of this process is at the other end: the mode of the socket
// says so already.
func isOwn(file *os.File) bool {
	raw, err := file.SyscallConn()
	own := false
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
			own = err == nil && peer.Uid == uint32(os.Geteuid())
		})
	}
	return own
}
