package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/descriptor"
)

// lockName is the file below the state directory that a cloved holds locked: two of them
// would start every run twice. It is never removed, so that no cloved locks a file that
// has lost its name.
const lockName = "cloved.lock"

// A cloved that is killed while it starts a supervisor leaves its child with a
// copy of the lock, for the moment between fork and exec. The next cloved waits
// for that, and not for another cloved.
const lockPatience = 5 * time.Second // that moment was longer than a second on a busy machine

// Lock makes this process the one cloved of a state directory, for as long as
// it lives. The error for another one is of KindBusy.
func Lock(state string) (*os.File, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, agent.Failed("state directory", err)
	}
	path := filepath.Join(state, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, agent.Failed("lock", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	if err = descriptor.LockWithin(ctx, file, unix.LOCK_EX); err == nil {
		// For people only, and a full disk must not keep cloved from its agents.
		_ = file.Truncate(0)
		_, _ = fmt.Fprintln(file, os.Getpid())
		return file, nil
	}
	defer file.Close()
	if !errors.Is(err, context.DeadlineExceeded) {
		return nil, agent.Failed("lock", err)
	}
	var holder int
	_, _ = fmt.Fscan(file, &holder) // for people only
	return nil, &agent.Error{Kind: agent.KindBusy, Message: fmt.Sprintf("another cloved (process %d) serves %s", holder, state),
		Hint: "use that one, or name other directories with --root, --run-dir and --socket"}
}

// Listen makes the socket for root and the group, or takes the one that systemd
// holds (clove.socket), and returns the group's id; -1 when there is no such
// group. The caller holds the Lock.
func Listen(path, group string) (*net.UnixListener, int, error) {
	gid, err := groupID(group)
	if err != nil {
		return nil, -1, err
	}
	listener, err := inherit(activation.Files(true), path)
	if listener != nil || err != nil {
		return listener, gid, err
	}
	listener, err = makeSocket(path, gid)
	return listener, gid, err
}

// groupID is -1 for a group that does not exist.
func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return -1, nil // only root may connect, as the configuration says
	}
	gid, err := strconv.Atoi(g.Gid)
	return gid, agent.Failed("group", err)
}

// inherit takes the one socket that was handed over; nil when there is none.
// Its owner and mode are the unit's affair, but its path is where clove looks.
func inherit(handed []*os.File, path string) (*net.UnixListener, error) {
	if len(handed) == 0 {
		return nil, nil
	}
	defer func() {
		for _, file := range handed {
			file.Close() // the listener has a copy
		}
	}()
	refuse := func(message string) error {
		return &agent.Error{Kind: agent.KindInvalid, Step: "socket", Message: message, Hint: "`systemctl cat clove.socket` shows what cloved is given"}
	}
	if len(handed) > 1 {
		return nil, refuse(fmt.Sprintf("the service manager hands over %d sockets, and cloved has one", len(handed)))
	}
	any, err := net.FileListener(handed[0])
	if err != nil {
		return nil, refuse("what the service manager hands over is no listening socket")
	}
	listener, isUnix := any.(*net.UnixListener)
	if !isUnix || any.Addr().String() != path {
		any.Close()
		return nil, refuse(fmt.Sprintf("the service manager hands over %s, but the configuration names %s", any.Addr(), path))
	}
	return listener, nil
}

// makeSocket listens at path; gid -1: for root alone.
func makeSocket(path string, gid int) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return nil, agent.Failed("socket", err)
	}
	if err := freePath(path); err != nil {
		return nil, err
	}
	// No process may connect before owner and mode are right. The umask is that of the
	// whole process; it is changed before cloved serves.
	before := unix.Umask(0o777)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(before)
	if err != nil {
		return nil, agent.Failed("socket", err)
	}
	mode := os.FileMode(0o600)
	if gid >= 0 {
		mode = 0o660
	}
	if err = os.Chown(path, 0, max(gid, 0)); err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return nil, agent.Failed("socket", errors.Join(err, listener.Close()))
	}
	return listener, nil
}

// freePath removes the socket of a cloved that was killed. One that answers is
// another's, and whatever is no socket is none of ours.
func freePath(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return agent.Failed("socket", err)
	}
	refuse := func(message, hint string) error {
		return &agent.Error{Kind: agent.KindBusy, Step: "socket", Message: path + " " + message, Hint: hint}
	}
	if info.Mode()&os.ModeSocket == 0 {
		return refuse("is there and is no socket", "name another with --socket")
	}
	if served(path) {
		return refuse("is served by another process", "end it, or name another socket with --socket")
	}
	return agent.Failed("socket", os.Remove(path))
}

// served reports whether the process that listens at path lives. One that was killed
// may have left a child with a copy of its socket, for the moment between fork and
// exec: the kernel then still takes connections.
func served(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return true
	}
	var listener *unix.Ucred
	failed := raw.Control(func(fd uintptr) { listener, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	// The number 0 is a process of another pid namespace.
	return failed != nil || err != nil || listener.Pid == 0 || !errors.Is(unix.Kill(int(listener.Pid), 0), unix.ESRCH)
}
