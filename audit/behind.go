package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// Last is the number of the last record that the head of the log in dir covers. Lines
// behind it are no records: their writer is at them still, was killed, or never wrote them. A
// log without a head has no record.
func Last(dir string) (uint64, error) {
	h, _, err := readHead(filepath.Join(dir, headName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return h.count, err
}

// commitPatience is how long a writer may take from a line to the head that covers it.
const commitPatience = 5 * time.Second

// unacknowledged is for a reader that found a line in the file behind the first count
// records. It returns nil once the head covers it, and a *Problem if it does not: then no
// writer has the log, or the line is none of that writer's.
func unacknowledged(dir, file string, count uint64) error {
	for deadline := time.Now().Add(commitPatience); ; time.Sleep(lockPoll) {
		written, err := inUse(dir) // before the head is read: what ends between has written it
		if err != nil {
			return err
		}
		now, err := Last(dir)
		if err != nil || now > count {
			return err
		}
		if !written || time.Now().After(deadline) {
			return &Problem{Kind: Inserted, Number: count + 1, File: file, Message: fmt.Sprintf("the log's head ends it at record %d, and there are lines behind it, which are not records", count)}
		}
	}
}

// inUse reports whether a writer has the log in dir.
func inUse(dir string) (bool, error) {
	lock, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	err = descriptor.Lock(lock, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
