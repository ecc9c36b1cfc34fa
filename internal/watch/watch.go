// Package watch notifies of changes in a directory (inotify(7)). A notification says only
// that something was written.
//
// Notifications are coalesced, so a slow reader looks once. The watches of one Source
// share one inotify instance: the kernel gives each user, and so the host's root with
// all its programs, only 128 (fs.inotify.max_user_instances).
//
// It refuses to say what happened: read the files.
package watch

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Watcher watches one directory, not what lies below it.
type Watcher struct {
	// Changed gets one value after one or more changes, also when the directory
	// itself goes; it is closed by Close.
	Changed <-chan struct{}

	changed    chan struct{}
	source     *Source
	descriptor int
	alone      bool // the source is this one's
}

// writes are changes of files' content, new names and names that vanish. A directory that
// is itself removed reports IN_IGNORED without being asked.
const writes = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE

// Source is one inotify instance for any number of Watchers. The zero value is ready;
// it opens the instance when it is first needed.
type Source struct {
	mu      sync.Mutex // guards the following
	file    *os.File   // nil: not yet needed
	number  int        // file's descriptor
	watched map[int][]*Watcher
	closed  bool
}

// Dir begins to watch the directory at path, with an inotify instance of its own.
func Dir(path string) (*Watcher, error) {
	s := &Source{}
	w, err := s.Dir(path)
	if err != nil {
		s.Close()
		return nil, err
	}
	w.alone = true
	return w, nil
}

// Dir begins to watch the directory at path.
func (s *Source) Dir(path string) (*Watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("cannot watch files: %w", err)
	}
	// For a directory that is watched already the kernel returns the same descriptor.
	descriptor, err := unix.InotifyAddWatch(s.number, path, writes)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", path, err)
	}
	changed := make(chan struct{}, 1)
	w := &Watcher{Changed: changed, changed: changed, source: s, descriptor: descriptor}
	s.watched[descriptor] = append(s.watched[descriptor], w)
	return w, nil
}

// open makes the instance when the first directory is watched; s.mu is held.
func (s *Source) open() error {
	if s.closed {
		return os.ErrClosed
	}
	if s.file != nil {
		return nil
	}
	number, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	s.number, s.file, s.watched = number, os.NewFile(uintptr(number), "inotify"), map[int][]*Watcher{}
	go s.listen(s.file)
	return nil
}

// Close ends the instance and its Watchers' notifications. A second call does nothing.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.file == nil {
		s.closed = true
		return nil
	}
	s.closed = true
	return s.file.Close()
}

// Close ends it and closes Changed. A second time it does nothing.
func (w *Watcher) Close() error {
	if w.source.leave(w) && w.alone {
		return w.source.Close()
	}
	return nil
}

// leave takes the Watcher out, and its directory with the last one.
func (s *Source) leave(w *Watcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(other *Watcher) bool { return other == w }
	if !slices.ContainsFunc(s.watched[w.descriptor], same) {
		return false
	}
	close(w.changed)
	left := slices.DeleteFunc(s.watched[w.descriptor], same)
	if s.watched[w.descriptor] = left; len(left) == 0 {
		delete(s.watched, w.descriptor)
		if !s.closed {
			_, _ = unix.InotifyRmWatch(s.number, uint32(w.descriptor)) // the directory may have gone, and the watch with it
		}
	}
	return true
}

// listen ends when the file is closed. Its buffer is larger than any event (16 bytes and a
// name), or read(2) would fail with EINVAL (inotify(7)).
func (s *Source) listen(file *os.File) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := file.Read(buffer)
		if err != nil {
			return
		}
		s.wake(buffer[:n])
	}
}

// wake wakes the Watchers whose directories the events are about. A full queue of the
// kernel's (IN_Q_OVERFLOW) is about all of them.
func (s *Source) wake(events []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(events) >= unix.SizeofInotifyEvent {
		descriptor := int(int32(binary.NativeEndian.Uint32(events)))
		name := int(binary.NativeEndian.Uint32(events[12:])) // the length of what follows
		events = events[min(len(events), unix.SizeofInotifyEvent+name):]
		if descriptor >= 0 {
			wakeAll(s.watched[descriptor])
			continue
		}
		for _, watchers := range s.watched {
			wakeAll(watchers)
		}
	}
}

// wakeAll never waits: a Watcher that has not looked yet has its notification already.
func wakeAll(watchers []*Watcher) {
	for _, w := range watchers {
		select {
		case w.changed <- struct{}{}:
		default: // a notification is waiting already
		}
	}
}
