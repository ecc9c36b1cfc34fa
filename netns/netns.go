package netns

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

const ownPath = "/proc/thread-self/ns/net"

// Namespace is a network namespace held by a descriptor.
type Namespace struct {
	file *os.File
	plan Plan // what Listen serves; set before the Namespace is shared

	mu     sync.Mutex       // guards what follows
	thread *nsthread.Thread // inside; nil until something is done there
	closed bool
}

var errClosed = errors.New("the network namespace is closed")

// New makes a namespace whose loopback interface is up. The caller closes it.
func New() (*Namespace, error) {
	n, err := create()
	if err != nil {
		return nil, err
	}
	if err := n.do(raiseLoopback); err != nil {
		n.Close()
		return nil, err
	}
	n.rest()
	return n, nil
}

func create() (*Namespace, error) {
	thread, err := nsthread.Start(unix.CLONE_NEWNET)
	if err != nil {
		return nil, err
	}
	n := &Namespace{thread: thread}
	err = thread.Do(func() (err error) {
		if n.file, err = os.Open(ownPath); err != nil {
			return err
		}
		return boundOptions("/proc/sys/net/core/optmem_max")
	})
	if err != nil {
		thread.Close()
		n.file.Close() // of nil it is harmless
		return nil, fmt.Errorf("cannot hold the new network namespace: %w", err)
	}
	return n, nil
}

// Open holds the network namespace of a running agent, /proc/PID/ns/net. It
// refuses the caller's own: what a Plan does to a namespace would take the
// host off its network.
func Open(path string) (*Namespace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open network namespace: %w", err)
	}
	if err := checkForeign(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot open network namespace %s: %w", path, err)
	}
	return &Namespace{file: file}, nil
}

// ErrNoNamespace says that a path is some other file, as a namespace's is when
// its mount is gone.
var ErrNoNamespace = errors.New("it is no namespace")

func checkForeign(file *os.File) error {
	// ioctl_nsfs(2); anything that is no namespace answers ENOTTY.
	kind, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_NSTYPE)
	if err != nil {
		return errors.Join(ErrNoNamespace, err)
	}
	if kind != unix.CLONE_NEWNET {
		return errors.New("it is a namespace of another kind")
	}
	its, err := file.Stat()
	if err != nil {
		return err
	}
	own, err := os.Stat(ownPath)
	if err != nil {
		return err
	}
	if os.SameFile(its, own) {
		return errors.New("it is this process's own")
	}
	return nil
}

// do runs f on a thread inside the namespace. The thread stays for the next
// time: flows and published connections come often.
func (n *Namespace) do(f func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errClosed
	}
	if n.thread == nil {
		thread, err := enter(n.file)
		if err != nil {
			return err
		}
		n.thread = thread
	}
	return n.thread.Do(f)
}

func enter(namespace *os.File) (*nsthread.Thread, error) {
	thread, err := nsthread.Start(0)
	if err != nil {
		return nil, err
	}
	err = thread.Do(func() error { return unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET) })
	if err != nil {
		thread.Close()
		return nil, fmt.Errorf("cannot enter the network namespace: %w", err)
	}
	return thread, nil
}

// rest ends the thread inside; do makes another when it is needed.
func (n *Namespace) rest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.thread != nil {
		n.thread.Close()
		n.thread = nil
	}
}

// Path names the namespace for other processes of this host, for as long as
// this process lives and the Namespace is open.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

// Close lets go of the namespace; processes inside keep it alive.
func (n *Namespace) Close() error {
	n.rest()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.file.Close()
}
