package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// childrenSocket, in a run directory, takes one connection of the supervisor of each live child. The
// Linux kernel closes it however either side ends: a child's supervisor sees the end of its parent's,
// also without cloved, and the parent's gives space of the disk back that it has set aside for the
// child.
const childrenSocket = "children"

// linkAsk is the one message of a child's supervisor, and linkAnswer the answer.
type linkAsk struct {
	DiskBytes int64 `json:"disk_bytes"` // to be set aside
}

type linkAnswer struct {
	Refused bool  `json:"refused,omitempty"`
	Free    int64 `json:"free_bytes,omitempty"` // of the disk, where that is why it is refused
	// Error is why it is refused otherwise.
	Error string `json:"error,omitempty"`
}

// linkMost bounds a message, in bytes; linkPatience the wait for one. linkPause is behind a connection that
// could not be taken.
const (
	linkMost     = 4096
	linkPatience = 10 * time.Second
	linkPause    = 10 * time.Millisecond
)

// disk is what space is set aside on.
type disk interface {
	// SetAside takes space from the agent until the Closer is closed. If there is not enough, it returns
	// nil and what is free, in bytes.
	SetAside(bytes int64) (space io.Closer, free int64, err error)
}

// links is a parent's side. Its methods are safe from any goroutine.
type links struct {
	listener *net.UnixListener
	working  sync.WaitGroup

	mu   sync.Mutex
	disk disk                   // nil: it is not limited
	open map[*net.UnixConn]bool // nil: closed
}

// listenForChildren lets children of a run live until close, or the end of this process.
func listenForChildren(runDirectory string) (l *links, err error) {
	err = atSocket(runDirectory, func(address *net.UnixAddr) error {
		_ = os.Remove(address.Name) // of a supervisor that was killed
		listener, err := net.ListenUnix("unix", address)
		if err != nil {
			return err
		}
		listener.SetUnlinkOnClose(false) // the address leads nowhere by then
		l = &links{listener: listener, open: map[*net.UnixConn]bool{}}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.working.Go(l.accept)
	return l, nil
}

// setDisk sets the disk of which children get their share, before the agent can have any.
func (l *links) setDisk(d disk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disk = d
}

// atSocket calls use with an address of the socket that is short enough for any run directory.
func atSocket(runDirectory string, use func(*net.UnixAddr) error) error {
	dir, err := os.OpenFile(runDirectory, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	return use(&net.UnixAddr{Net: "unix", Name: filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), childrenSocket)})
}

func (l *links) accept() {
	for {
		conn, err := l.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files
			time.Sleep(linkPause)
			continue
		}
		l.mu.Lock()
		if l.open == nil {
			conn.Close()
		} else {
			l.open[conn] = true
			l.working.Go(func() { l.serve(conn) })
		}
		l.mu.Unlock()
	}
}

// serve answers one child's supervisor, and keeps what it got until its connection ends.
func (l *links) serve(conn *net.UnixConn) {
	defer func() {
		l.mu.Lock()
		delete(l.open, conn)
		l.mu.Unlock()
		conn.Close()
	}()
	var ask linkAsk
	if json.NewDecoder(io.LimitReader(conn, linkMost)).Decode(&ask) != nil {
		return
	}
	l.mu.Lock()
	from := l.disk
	l.mu.Unlock()
	var answer linkAnswer
	if from != nil {
		space, free, err := from.SetAside(ask.DiskBytes)
		if space != nil {
			defer space.Close()
		}
		answer = linkAnswer{Refused: space == nil, Free: free}
		if err != nil {
			answer.Error = err.Error()
		}
	}
	if json.NewEncoder(conn).Encode(answer) == nil {
		_, _ = io.Copy(io.Discard, conn) // any error is its end
	}
}

// close ends the connections, and gives back what was set aside.
func (l *links) close() {
	if l == nil {
		return
	}
	l.listener.Close()
	l.mu.Lock()
	for conn := range l.open {
		conn.Close()
	}
	l.open = nil
	l.mu.Unlock()
	l.working.Wait()
}

// link is a child's side: its connection to the supervisor of its parent.
type link struct{ conn *net.UnixConn }

// linkTo connects to the parent with a run directory. It is an error if that does not live.
func linkTo(runDirectory string) (k link, err error) {
	err = atSocket(runDirectory, func(address *net.UnixAddr) error {
		k.conn, err = net.DialUnix("unix", nil, address)
		return err
	})
	return k, err
}

// lives reports whether the parent's supervisor has not ended, and not given up its children.
func (k link) lives() bool {
	raw, err := k.conn.SyscallConn()
	lives := false
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			lives = errors.Is(err, unix.EAGAIN)
		})
	}
	return lives && err == nil
}

// wait returns at the parent's end, or behind close.
func (k link) wait() { _, _ = io.Copy(io.Discard, k.conn) }

func (k link) close() error { return k.conn.Close() }

// setAside takes space of the parent's disk, until the connection ends. A refusal has the kind conflict.
func (k link) setAside(bytes int64, parent string) error {
	err := k.conn.SetDeadline(time.Now().Add(linkPatience))
	if err == nil {
		err = json.NewEncoder(k.conn).Encode(linkAsk{DiskBytes: bytes})
	}
	var answer linkAnswer
	if err == nil {
		err = json.NewDecoder(io.LimitReader(k.conn, linkMost)).Decode(&answer)
	}
	if err == nil {
		err = k.conn.SetDeadline(time.Time{})
	}
	switch {
	case err != nil:
		return fmt.Errorf("cannot ask the supervisor of %s for space of its disk: %w", parent, err)
	case answer.Error != "":
		return fmt.Errorf("cannot set space of the disk of %s aside: %s", parent, answer.Error)
	case answer.Refused:
		return &agent.Error{Kind: agent.KindConflict, Step: agent.ControlDisk, Message: fmt.Sprintf("it has a disk of %d bytes, and that of %s, which it comes from, has %d free", bytes, parent, answer.Free),
			Hint: "ask for less with limits.disk_bytes, have fewer children at once, or give " + parent + " more with --disk"}
	}
	return nil
}
