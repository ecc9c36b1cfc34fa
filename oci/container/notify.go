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

// notify reports to the service manager that the container's process is ready
// (sd_notify(3)). The manager knows this program, not that process, and its
// socket is not in the container's file system: so a socket of the container's
// own stands between the two.
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

// notifyOf is nil without a service manager.
func (e Engine) notifyOf(id, host string) *notify {
	if host == "" {
		return nil
	}
	return &notify{host: host, directory: filepath.Join(e.Root, id, "notify")}
}

// mount makes the socket's directory part of the container.
func (n *notify) mount(spec *specs.Spec) {
	spec.Mounts = append(spec.Mounts, specs.Mount{Destination: notifyInside, Source: n.directory,
		Options: []string{"bind", "nosuid", "noexec", "nodev", "ro"}})
	spec.Process.Env = append(spec.Process.Env, "NOTIFY_SOCKET="+filepath.Join(notifyInside, notifySocketName))
}

func (n *notify) listen() (err error) {
	path := filepath.Join(n.directory, notifySocketName)
	if n.socket, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		return err
	}
	return os.Chmod(path, 0o777) // whoever the process is
}

func (n *notify) close() { _ = n.socket.Close() }

// announce hands the readiness of the process that Run started on. In the
// foreground this program stays the manager's main process. Detached it waits
// until the process, which becomes the main one, is ready or has ended.
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

// await is forward, until the container's process ends.
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

// forward waits for the word READY and hands it on, with main as the process to
// watch from now on. It is over when the socket is closed.
func (n *notify) forward(main int) error {
	host, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.host, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer host.Close()
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

// barrierPatience is sd_notify_barrier(3)'s: an old manager does not know it.
const barrierPatience = 30 * time.Second

// announceTo ends when the manager has read everything: the pid may belong to
// nobody when this program is gone.
func announceTo(host *net.UnixConn, ready string, main int) error {
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
