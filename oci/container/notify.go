package container

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/sirupsen/logrus"

	"clove.run/clove/internal/passfd"
)

// notify passes the readiness of the container's process on to the service manager
// (sd_notify(3)). The manager accepts messages from this program, not from the container's
// process, and its socket is not in the container's file system. So the container gets a
// socket of its own:
//
//	process ─▶ /run/notify/notify.sock ═ ROOT/ID/notify/notify.sock ─▶ host
type notify struct {
	host      string // the manager's socket, NOTIFY_SOCKET of this program
	directory string // mounted in the container, so that the socket may be made later
	socket    *net.UnixConn
}

const (
	notifySocketName = "notify.sock"
	notifyInside     = "/run/notify"
)

// notifyOf returns nil without a service manager.
func (e Engine) notifyOf(id, host string) *notify {
	if host == "" {
		return nil
	}
	return &notify{host: host, directory: filepath.Join(e.Root, id, "notify")}
}

// mount adds the socket's directory to the container. The directory and not the socket,
// because the socket is made by start, after the mounts.
func (n *notify) mount(spec *specs.Spec) {
	spec.Mounts = append(spec.Mounts, specs.Mount{Destination: notifyInside, Source: n.directory,
		Options: []string{"bind", "nosuid", "noexec", "nodev", "ro"}})
	spec.Process.Env = append(spec.Process.Env, "NOTIFY_SOCKET="+filepath.Join(notifyInside, notifySocketName))
}

// listen makes the socket that the container writes to.
func (n *notify) listen() (err error) {
	path := filepath.Join(n.directory, notifySocketName)
	if n.socket, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		return err
	}
	// The container's process may have any user id.
	return os.Chmod(path, 0o777)
}

func (n *notify) close() { _ = n.socket.Close() }

// announce passes on the readiness of the process that Run has started. In the foreground
// this program stays the manager's main process. Detached, it waits until the process,
// which becomes the main one, is ready or has ended.
func (c *Container) announce(o Start) {
	switch {
	case c.notify == nil || o.Wait: // then Exec does it
	case o.Detach:
		if err := c.notify.await(c); err != nil {
			logrus.Warn(err)
		}
	default:
		go func() { // ends with the socket
			if err := c.notify.forward(os.Getpid()); err != nil {
				logrus.Warn(err)
			}
		}()
	}
}

// await is forward that ends with the container's process: one that dies before it is ready
// would never send anything.
func (n *notify) await(c *Container) error {
	state, err := c.lib.State()
	if err != nil {
		return err
	}
	process, err := c.watch()
	if err != nil {
		return err
	}
	go func() { // ends with the process, or with this program
		if process != nil {
			process.Wait(context.Background())
			process.Close()
		}
		n.close()
	}()
	return n.forward(state.InitProcessPid)
}

// forward waits for READY= and passes it on, with main as the process that the manager
// watches from then on. It returns nil when the socket is closed.
func (n *notify) forward(main int) error {
	host, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.host, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer host.Close()
	// Other lines (STATUS=, WATCHDOG=) are dropped, as runc drops them.
	datagram := make([]byte, 4096)
	for {
		length, err := n.socket.Read(datagram)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		for line := range bytes.Lines(datagram[:length]) {
			if !bytes.HasPrefix(line, []byte("READY=")) {
				continue
			}
			return announceTo(host, string(bytes.TrimRight(line, "\n")), main)
		}
	}
}

// barrierPatience is as long as runc waits: a manager before systemd 246 does not know
// barriers.
const barrierPatience = 30 * time.Second

// announceTo returns when the manager has read both messages: it looks up who sent them by
// the sender's pid, which may be unknown once this program has ended. The manager closes
// the pipe's end when everything before it is processed.
func announceTo(host *net.UnixConn, ready string, main int) error {
	// Two datagrams, as runc sends them.
	for _, message := range []string{ready, "MAINPID=" + strconv.Itoa(main)} {
		if _, err := host.Write([]byte(message + "\n")); err != nil {
			return err
		}
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	_, err = passfd.Send(host, []byte("BARRIER=1"), theirs)
	if err = errors.Join(err, theirs.Close()); err != nil {
		return err
	}
	if err := ours.SetReadDeadline(time.Now().Add(barrierPatience)); err != nil {
		return err
	}
	if n, err := ours.Read(make([]byte, 1)); n != 0 || err == nil {
		return errors.New("the service manager wrote to a pipe that it may only close")
	}
	return nil
}
