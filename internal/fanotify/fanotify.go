// Package fanotify reports which files are opened, written and executed below some mounts
// (fanotify(7)).
//
// # Theory of operation
//
// Mark adds one mount of any mount namespace, named by a path through /proc/PID/root. The
// kernel then sends an event for each file that was closed, with whether it was open for
// writing, and for each that was executed. Events carry a descriptor, whose link in /proc
// names the file as the root of its own mount namespace sees it.
//
// The events are notifications: nothing waits for a reader, and nothing is refused. So the
// queue has no bound of the kernel's, which would lose events. Instead Read gives the watch up
// when more than mostWaiting are in it: only a count is left, which the caller must report.
//
// # What it does not see
//
// Directories and their entries, devices and pipes, files that were never opened, and mounts
// that a process makes later in a namespace of its own.
package fanotify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Event is one file that was used.
type Event struct {
	Path     string // as the root of the file's mount namespace sees it
	PID      int    // the process, as the reader sees it
	Executed bool   // as a program, an interpreter or a dynamic loader
	Written  bool   // it was open for writing
	Folder   bool   // it is a folder
	Removed  bool   // it had no name any more when the event was read
}

// Watch is one queue of events.
type Watch struct {
	file *os.File
	// Lost is why not everything is in the events; empty: everything is. It may be read when
	// Read has returned.
	Lost   string
	waited int // events since the queue was measured
}

// mask is one event for each use: a file that was opened is closed at last by its process's end.
// So is a folder, which is opened to list it or to begin paths at it.
const mask = unix.FAN_CLOSE_WRITE | unix.FAN_CLOSE_NOWRITE | unix.FAN_OPEN_EXEC | unix.FAN_ONDIR

// mostWaiting bounds the memory that waiting events take: some 100 bytes each.
const mostWaiting = 200_000

// measureEvery is how many events pass between two looks at the queue's length.
const measureEvery = 4096

// New opens a queue without marks. It needs CAP_SYS_ADMIN.
func New() (*Watch, error) {
	// O_NONBLOCK of the events: a FIFO that is opened for an event would wait for a writer.
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK|unix.FAN_UNLIMITED_QUEUE,
		unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_LARGEFILE|unix.O_NOATIME)
	if err != nil {
		return nil, fmt.Errorf("cannot watch files (fanotify): %w", err)
	}
	return &Watch{file: os.NewFile(uintptr(fd), "fanotify")}, nil
}

// Mark adds the mount that path is in.
func (w *Watch) Mark(path string) error {
	if err := unix.FanotifyMark(w.number(), unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, mask, unix.AT_FDCWD, path); err != nil {
		return fmt.Errorf("cannot watch the files of %s (fanotify): %w", path, err)
	}
	return nil
}

// number is the descriptor, which stays in non-blocking mode.
func (w *Watch) number() (fd int) {
	if raw, err := w.file.SyscallConn(); err == nil {
		_ = raw.Control(func(n uintptr) { fd = int(n) })
	}
	return fd
}

// buffer holds some hundred events: each is 24 bytes.
const buffer = 16 << 10

// Read passes events on until Stop, and then those that are still in the queue.
func (w *Watch) Read(to func(Event)) {
	var events [buffer]byte
	for {
		n, err := w.file.Read(events[:])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			w.drain(events[:], to)
			return
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			w.missed(err)
			continue
		}
		w.pass(events[:n], to)
	}
}

// drain reads without waiting.
func (w *Watch) drain(events []byte, to func(Event)) {
	fd := w.number()
	for {
		n, err := unix.Read(fd, events)
		switch {
		case err == unix.EAGAIN:
			return
		case err == unix.EINTR:
		case err != nil && !isOfFile(err):
			w.missed(err)
			return
		case err != nil:
			w.missed(err)
		default:
			w.pass(events[:n], to)
		}
	}
}

// isOfFile reports whether the kernel could not open the file of an event: the event is gone
// then, and the next can be read.
func isOfFile(err error) bool {
	for _, known := range []unix.Errno{unix.ENXIO, unix.ENODEV, unix.EACCES, unix.EPERM, unix.ESTALE, unix.ENOENT, unix.EIO} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// missed notes an event that could not be read. A socket's name and a device without a driver
// cannot be opened, and are no files.
func (w *Watch) missed(err error) {
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
		return
	}
	w.Lost = "an event could not be read: " + err.Error()
}

// pass decodes what one read returned.
func (w *Watch) pass(events []byte, to func(Event)) {
	const size = int(unsafe.Sizeof(unix.FanotifyEventMetadata{}))
	for len(events) >= size {
		length := int(binary.NativeEndian.Uint32(events))
		event := unix.FanotifyEventMetadata{Vers: events[4], Mask: binary.NativeEndian.Uint64(events[8:]),
			Fd: int32(binary.NativeEndian.Uint32(events[16:])), Pid: int32(binary.NativeEndian.Uint32(events[20:]))}
		if length < size || length > len(events) || event.Vers != unix.FANOTIFY_METADATA_VERSION {
			w.Lost = "the kernel's events have another form than this clove reads"
			return
		}
		w.one(event, to)
		events = events[length:]
		if w.waited++; w.waited%measureEvery == 0 {
			w.measure()
		}
	}
}

func (w *Watch) one(event unix.FanotifyEventMetadata, to func(Event)) {
	if event.Mask&unix.FAN_Q_OVERFLOW != 0 {
		w.Lost = "the kernel's queue of events was full"
		return
	}
	if event.Fd < 0 {
		return
	}
	defer unix.Close(int(event.Fd))
	var stat unix.Stat_t
	if unix.Fstat(int(event.Fd), &stat) != nil {
		return
	}
	kind := stat.Mode & unix.S_IFMT
	if kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", event.Fd))
	if err != nil {
		w.Lost = "a file's name could not be read: " + err.Error()
		return
	}
	e := Event{PID: int(event.Pid), Executed: event.Mask&unix.FAN_OPEN_EXEC != 0, Written: event.Mask&unix.FAN_CLOSE_WRITE != 0, Folder: kind == unix.S_IFDIR}
	e.Path, e.Removed = path, stat.Nlink == 0
	if e.Removed {
		e.Path = strings.TrimSuffix(path, " (deleted)")
	}
	to(e)
}

// measure gives the watch up where the agent opens files faster than they are read.
func (w *Watch) measure() {
	waiting, err := unix.IoctlGetInt(w.number(), unix.TIOCINQ) // FIONREAD
	if err != nil || waiting/int(unsafe.Sizeof(unix.FanotifyEventMetadata{})) < mostWaiting {
		return
	}
	_ = unix.FanotifyMark(w.number(), unix.FAN_MARK_FLUSH|unix.FAN_MARK_MOUNT, 0, unix.AT_FDCWD, "") // what is marked ends with the queue at the latest
	w.Lost = fmt.Sprintf("more than %d uses of files waited to be read, and the watch ended there", mostWaiting)
}

// Stop makes Read pass on what is in the queue, and return.
func (w *Watch) Stop() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) }

// Close ends the watch; the kernel removes its marks.
func (w *Watch) Close() error { return w.file.Close() }
