// Package nsthread runs functions on an operating system thread that left its
// process's namespaces.
//
// A Thread owns one locked OS thread. It unshares the namespaces of its flags and
// then serves Do calls in order. Nothing else in clove changes a thread's
// namespaces, so no goroutine can find itself on a thread that sees another
// file system or network. The thread is never given back to the Go scheduler:
// Close ends it, and with it every namespace that nothing else holds.
//
// A thread can also have a user's ids for files and sockets (StartAs): where root
// acts for a user, the kernel itself then decides what that user may do, and no path
// can be exchanged between a check and its use. Signals go by other ids, which stay
// root's.
//
// A process that is started inside Do inherits the thread's namespaces, and
// its parent-death signal (prctl(2), PR_SET_PDEATHSIG) is tied to this thread,
// not to the process: keep the Thread open for as long as such a child lives.
package nsthread

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// init reserves the process's first thread for the main goroutine. The Go runtime cannot
// end that thread. A goroutine that changed its namespaces there (ours, or libcontainer's,
// which enters the sandbox's mount namespace) would keep them for the life of the process,
// and /proc/self would show them as the process's own.
func init() { runtime.LockOSThread() }

// Thread is one locked OS thread in namespaces of its own. Any goroutine may call Do; the
// calls run one after the other.
type Thread struct {
	tasks chan task
	ended chan struct{}
}

type task struct {
	run  func() error
	done chan error
}

// Start makes a thread and unshares flags (CLONE_NEWNS, CLONE_NEWNET) on it. With
// CLONE_NEWNS all mounts of the new namespace are made private, so that no mount propagates
// in either direction.
func Start(flags int) (*Thread, error) {
	t := &Thread{tasks: make(chan task), ended: make(chan struct{})}
	started := make(chan error, 1)
	go t.serve(flags, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return t, nil
}

// serve is the thread's goroutine; it ends with Close. It never unlocks the thread, so the
// Go runtime ends the thread with it.
func (t *Thread) serve(flags int, started chan<- error) {
	defer close(t.ended)
	runtime.LockOSThread()
	err := unshare(flags)
	started <- err
	if err != nil {
		return
	}
	for job := range t.tasks {
		job.done <- job.run()
	}
}

// unshare gives the calling thread, which is locked and never given back, namespaces of its
// own.
func unshare(flags int) error {
	// CLONE_FS too: a thread cannot leave its mount namespace while it shares its working
	// directory with other threads (unshare(2)).
	if err := unix.Unshare(unix.CLONE_FS | flags); err != nil {
		return fmt.Errorf("cannot unshare namespaces %#x: %w", flags, err)
	}
	if flags&unix.CLONE_NEWNS == 0 {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the new mount namespace private: %w", err)
	}
	return nil
}

// errEnded is returned by Do after a function has ended the thread's goroutine.
var errEnded = errors.New("the namespace thread has ended")

// Do runs f on the thread, after every earlier call, and returns its error.
// It must not be called after Close.
func (t *Thread) Do(f func() error) error {
	job := task{run: f, done: make(chan error, 1)}
	select {
	case t.tasks <- job:
	case <-t.ended:
		return errEnded
	}
	select {
	case err := <-job.done:
		return err
	case <-t.ended:
		return errEnded // f called runtime.Goexit, as testing's Fatal does
	}
}

// Close ends the thread and waits for the last call.
func (t *Thread) Close() {
	close(t.tasks)
	<-t.ended
}
