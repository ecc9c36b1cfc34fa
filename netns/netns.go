package netns

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// ownPath is the calling thread's namespace: threads of one process may be in different
// ones.
const ownPath = "/proc/thread-self/ns/net"

// Namespace is a network namespace that a descriptor keeps alive.
type Namespace struct {
	file *os.File
	plan Plan // what Listen uses; set before the Namespace is shared

	mu     sync.Mutex       // guards the fields below
	thread *nsthread.Thread // inside the namespace; nil until the first do, and after rest
	closed bool
}

var errClosed = errors.New("the network namespace is closed")

// New makes a namespace with loopback up. The caller closes it.
func New() (*Namespace, error) {
	n, err := create()
	if err != nil {
		return nil, err
	}
	if err := n.do(raiseLoopback); err != nil {
		n.Close()
		return nil, err
	}
	// Loopback alone has no flows and no published ports, so nothing more is done inside.
	n.rest()
	return n, nil
}

// create makes the namespace on a new thread and opens it there. /proc/thread-self, because
// /proc/self is the process's first thread, which is still in the host's namespace.
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
		return setSysctls() // on this thread, whose namespace a proc shows
	})
	if err != nil {
		thread.Close()
		n.file.Close() // a nil file returns an error, which does not matter
		return nil, fmt.Errorf("cannot hold the new network namespace: %w", err)
	}
	return n, nil
}

// Open opens the network namespace of a running agent, /proc/PID/ns/net. It rejects the
// caller's own namespace: a Plan applied there would take the host off its network.
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

// ErrNoNamespace means that a path is an ordinary file. The file below a namespace's bind
// mount becomes visible when the mount is gone.
var ErrNoNamespace = errors.New("it is no namespace")

// checkForeign checks that file is a network namespace other than the process's own.
func checkForeign(file *os.File) error {
	// ioctl_nsfs(2); the ioctl fails with ENOTTY on anything but a namespace.
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

// do runs f on a thread inside the namespace. The thread is kept for later calls: each UDP
// flow and each published connection needs one. Calls wait for each other, so f must not
// wait for the network.
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

// enter starts a thread and moves it into the namespace. setns(2) with CLONE_NEWNET changes
// the calling thread only.
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

// rest ends the thread inside; do starts another when needed.
func (n *Namespace) rest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.thread != nil {
		n.thread.Close()
		n.thread = nil
	}
}

// Path names the namespace for other processes of this host. It is valid while this process
// lives and the Namespace is open.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

// Close closes the descriptor. The namespace lives on while processes are inside.
func (n *Namespace) Close() error {
	n.rest()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.file.Close()
}
