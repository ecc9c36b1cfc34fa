package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
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
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if err = descriptor.LockWithin(ctx, file, unix.LOCK_EX); err == nil {
		return &fileLock{file}, nil
	}
	file.Close()
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errBusy
	}
	return nil, fmt.Errorf("cannot lock %s: %w", path, err)
}

// release frees the lock at once. Closing alone would not: a child between
// fork and exec holds a copy of every descriptor.
func (l *fileLock) release() error {
	return errors.Join(descriptor.Lock(l.file, unix.LOCK_UN), l.file.Close())
}
