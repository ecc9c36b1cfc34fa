package netns

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// Namespace is a network namespace held by a descriptor.
type Namespace struct {
	file *os.File
}

// New makes a namespace whose loopback interface is up. The caller closes it.
func New() (*Namespace, error) {
	thread, err := nsthread.Start(unix.CLONE_NEWNET)
	if err != nil {
		return nil, err
	}
	defer thread.Close()
	n := &Namespace{}
	err = thread.Do(func() (err error) {
		if err := raiseLoopback(); err != nil {
			return err
		}
		n.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func raiseLoopback() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("cannot find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("cannot bring up the loopback interface: %w", err)
	}
	return nil
}

// Path names the namespace for other processes of this host, for as long as
// this process lives and the Namespace is open.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

// Close lets go of the namespace; processes inside keep it alive.
func (n *Namespace) Close() error { return n.file.Close() }
