package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// process names a process for people.
type process struct {
	pid     string
	command string
}

func (p process) String() string { return fmt.Sprintf("process %s (%s)", p.pid, p.command) }

// holderOf finds the process that holds a flock on path; false if no process that
// is visible here does. It reads /proc and not a pid in the file: such a note
// outlives its writer, and cannot be written on a full disk.
func holderOf(path string) (process, bool) {
	file, err := os.Stat(path)
	if err != nil {
		return process{}, false
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, descriptor := range descriptors {
		if holdsLock(descriptor, file) {
			pid := strings.Split(descriptor, "/")[2]
			return process{pid: pid, command: commandOf(pid)}, true
		}
	}
	return process{}, false
}

// holdsLock reports whether the descriptor, a /proc/PID/fd/N, is file and has a
// flock. The name is compared first, because stat(2) of a
// descriptor can hang on a dead network file system and reading a link cannot.
func holdsLock(descriptor string, file os.FileInfo) bool {
	target, err := os.Readlink(descriptor)
	if err != nil || filepath.Base(target) != file.Name() {
		return false
	}
	opened, err := os.Stat(descriptor)
	if err != nil || !os.SameFile(opened, file) {
		return false
	}
	// proc(5): fdinfo has a line "lock: 1: FLOCK ADVISORY WRITE PID …" for each
	// lock held through this open file, and none for one waited for.
	info, err := os.ReadFile(strings.Replace(descriptor, "/fd/", "/fdinfo/", 1))
	return err == nil && bytes.Contains(info, []byte("FLOCK"))
}

func commandOf(pid string) string {
	name, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
