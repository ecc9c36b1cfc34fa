// Package watch tells that something was written in a directory: inotify(7),
// and nothing more than a word that it is worth looking again.
//
// Words are coalesced, so a reader that is slow looks once.
//
// It refuses to say what happened: who wants to know reads the files.
package watch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Watcher watches one directory, not what lies below it.
type Watcher struct {
	// Changed gets one value after one or more changes; it is closed by Close.
	Changed <-chan struct{}
	file    *os.File
}

// Writes are changes of files' content, new names and names that vanish.
const writes = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE

// Dir begins to watch the directory at path.
func Dir(path string) (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot watch files: %w", err)
	}
	if _, err := unix.InotifyAddWatch(fd, path, writes); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot watch %s: %w", path, err)
	}
	changed := make(chan struct{}, 1)
	w := &Watcher{Changed: changed, file: os.NewFile(uintptr(fd), "inotify "+path)}
	go w.listen(changed)
	return w, nil
}

// Close ends it and closes Changed.
func (w *Watcher) Close() error { return w.file.Close() }

// listen ends when the file is closed. A full queue of the kernel's is a change
// like any other.
func (w *Watcher) listen(changed chan<- struct{}) {
	defer close(changed)
	buffer := make([]byte, 16<<10)
	for {
		if _, err := w.file.Read(buffer); err != nil {
			return
		}
		select {
		case changed <- struct{}{}:
		default: // one word is waiting already
		}
	}
}
