package container

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// firstExtra is the first descriptor after the standard streams.
const firstExtra = 3

// handDownListeners gives the first process the sockets that systemd opened for this
// program (sd_listen_fds(3)). LISTEN_PID is 1, the process's own number in its pid
// namespace: a process ignores sockets meant for another one.
func handDownListeners(process *libcontainer.Process) {
	listeners := activation.Files(false)
	if len(listeners) == 0 {
		return
	}
	process.ExtraFiles = append(process.ExtraFiles, listeners...)
	process.Env = append(process.Env, "LISTEN_FDS="+strconv.Itoa(len(listeners)), "LISTEN_PID=1")
}

// preserve adds count descriptors that this program was started with. They follow systemd's
// sockets, which are descriptors 3 and up as well.
func preserve(process *libcontainer.Process, count int) error {
	first := firstExtra + len(process.ExtraFiles)
	for i := range count {
		fd := first + i
		// os.NewFile accepts any number; a closed descriptor would only fail in the
		// container's start, with an error that names none.
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return fmt.Errorf("unable to stat preserved-fd %d (of %d): %w", i, count, err)
		}
		process.ExtraFiles = append(process.ExtraFiles, os.NewFile(uintptr(fd), "PreserveFD:"+strconv.Itoa(fd)))
	}
	return nil
}

// dial connects to one of the engine's sockets. libcontainer takes the connection as a
// file, which is a duplicate: the caller closes both.
func dial(path string) (net.Conn, *os.File, error) {
	connection, err := net.Dial("unix", path)
	if err != nil {
		return nil, nil, err
	}
	socket, err := connection.(*net.UnixConn).File()
	if err != nil {
		connection.Close()
		return nil, nil, err
	}
	return connection, socket, nil
}

// writePidFile renames a complete file into place, so that a shim never reads half a
// number. The temporary name is runc's: the error for a missing folder contains it.
func writePidFile(path string, process *libcontainer.Process) error {
	if path == "" {
		return nil
	}
	pid, err := process.Pid()
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	file, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_SYNC, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strconv.Itoa(pid))
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return os.Rename(temporary, path)
}

// terminate ends and reaps a process whose start failed.
func terminate(process *libcontainer.Process) error {
	if err := process.Signal(unix.SIGKILL); err != nil {
		return err
	}
	_, _ = process.Wait() // its status is the signal
	return nil
}

// checkSockets refuses to pass a process with network rules a socket of the caller's
// network: what is sent through such a socket leaves by the caller's network, past all
// rules. Unix sockets are allowed: they belong to no network.
func checkSockets(process *libcontainer.Process, streams bool) error {
	files := slices.Clone(process.ExtraFiles)
	if streams {
		files = append(files, os.Stdin, os.Stdout, os.Stderr)
	}
	for _, file := range files {
		domain := unix.AF_UNSPEC
		err := descriptor.Use(file, func(fd int) (err error) {
			domain, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
			return err
		})
		if errors.Is(err, unix.ENOTSOCK) || err == nil && domain == unix.AF_UNIX {
			continue
		}
		return errors.Join(fmt.Errorf("cannot hand on %s: it is a socket of another network, and the container has network rules; close it, or omit them", file.Name()), err)
	}
	return nil
}
