package host

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// SharedDirs hold the files of more than one program or user. Showing all of one because a
// script or an interpreter lies in it would show what nobody meant to show.
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

// ReadBounded reads a regular file of at most limit bytes. It does not open anything else:
// opening a FIFO would wait for a writer.
func ReadBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return os.ReadFile(path)
}
