package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// SharedDirs hold the files of more than one program or user. Showing all of one because a
// script or an interpreter lies in it would show files that are not meant to be shown.
var SharedDirs = []string{"/", "/bin", "/boot", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt",
	"/opt", "/root", "/run", "/sbin", "/srv", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin",
	"/usr/sbin", "/usr/share", "/var", "/var/lib", "/var/tmp"}

// InKernel reports whether a clean path lies in one of the kernel's own file systems.
func InKernel(path string) bool {
	return slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(dir string) bool { return Within(path, dir) })
}

// Within reports whether path is dir or lies below it. Both are clean.
func Within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// IsDirectory reports whether path is, through links, a directory.
func IsDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// IsFile reports whether path is, through links, a regular file.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Exists does not follow the last link: a link that leads nowhere exists.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// IsProgram reports whether path is, through links, a file that some user may execute.
// Which user does not matter here: inside the agent has another id.
func IsProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// kernelWait bounds the reading of files that wait for something to read, such as /proc/kmsg. On
// disks there is none.
const kernelWait = time.Second

// OpenRegular opens a regular file for reading, and nothing else: the open of a FIFO would wait for a
// writer.
func OpenRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, cmp.Or(err, fmt.Errorf("%s is not a regular file", path))
	}
	_ = file.SetReadDeadline(time.Now().Add(kernelWait)) // fails where no read waits
	return file, nil
}

// ReadBounded reads a regular file of at most limit bytes. The size that the kernel's files report is
// no bound.
func ReadBounded(path string, limit int64) ([]byte, error) {
	file, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return text, err
}

// Resolve returns the canonical path of a host file; shown is how the user wrote it, for
// the error.
func Resolve(step, absolute, shown string) (string, error) {
	real, err := filepath.EvalSymlinks(absolute)
	switch {
	case err == nil:
		return real, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", &agent.Error{Kind: agent.KindNotFound, Step: step, Message: shown + " does not exist", Hint: "check the path; it is one of the host's"}
	case isLoop(absolute):
		return "", &agent.Error{Kind: agent.KindInvalid, Step: step, Message: shown + " is a symbolic link that leads back to itself", Hint: "name the file itself"}
	}
	return "", &agent.Error{Kind: agent.KindInvalid, Step: step, Message: "cannot use " + shown, Hint: "check the path; it is one of the host's", Err: err}
}

// isLoop asks the kernel, because EvalSymlinks has no error value for a loop of links.
func isLoop(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, unix.ELOOP)
}

// CheckWorkspace applies rootfs's own rule early, before anything is made. A directory that
// many programs or users share would show the agent files that are not meant to be shown.
func CheckWorkspace(step, dir string) error {
	if !slices.Contains(SharedDirs, dir) && !InKernel(dir) {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: dir + " cannot be the workspace: it is a directory of the system",
		Hint: "put the script into a directory of its own"}
}
