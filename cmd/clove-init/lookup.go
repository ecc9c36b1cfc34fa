package main

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"syscall"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// lookUp finds the file of command as the agent sees files: a name with a slash is the
// path, another is the first executable file of that name in env's PATH. An empty entry of
// PATH is the working directory (POSIX.1, 8.3).
func lookUp(command string, env []string) (string, *initproto.ExecFailed) {
	if strings.Contains(command, "/") {
		if errno := executable(command); errno != 0 {
			return "", lookUpFailed(command, errno)
		}
		return command, nil
	}
	refused := "" // the first match that may not be executed
	for _, folder := range strings.Split(variable(env, "PATH"), ":") {
		if folder == "" {
			folder = "."
		}
		// Not path.Join: it would shorten "./x" to "x", which the interpreter of a script would look up in PATH.
		candidate := strings.TrimSuffix(folder, "/") + "/" + command
		switch errno := executable(candidate); errno {
		case 0:
			return candidate, nil
		case unix.EACCES:
			refused = cmp.Or(refused, candidate)
		}
	}
	if refused != "" {
		return "", lookUpFailed(refused, unix.EACCES)
	}
	return "", lookUpFailed(command, unix.ENOENT)
}

// executable returns 0, or why the caller may not execute the file.
func executable(file string) syscall.Errno {
	var stat unix.Stat_t
	if err := unix.Stat(file, &stat); err != nil {
		return err.(syscall.Errno)
	}
	// access(2) with X_OK succeeds for a directory that may be searched.
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	if err := unix.Access(file, unix.X_OK); err != nil {
		return err.(syscall.Errno)
	}
	return 0
}

// variable returns the value of the first entry for name in env, like getenv(3).
func variable(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// notFound reports the errors that mean that the file does not exist.
func notFound(errno syscall.Errno) bool { return errno == unix.ENOENT || errno == unix.ENOTDIR }

func lookUpFailed(file string, errno syscall.Errno) *initproto.ExecFailed {
	// The exit codes are those of shells: 127 for a command that does not exist, 126 for
	// one that cannot be executed.
	failure := &initproto.ExecFailed{Step: "look up", Errno: errno, ExitCode: initproto.ExitCannotExec,
		Message: fmt.Sprintf("%s: %s", file, errno)}
	if notFound(errno) {
		failure.ExitCode = initproto.ExitNotFound
		if path.Base(file) == file {
			failure.Message = fmt.Sprintf("%s: not found in the sandbox's PATH", file)
		}
	}
	return failure
}

// reasons explain execve(2)'s errors for a file that lookUp has found.
var reasons = map[syscall.Errno]string{
	unix.ENOENT:  "its interpreter or loader is not in the sandbox",
	unix.ENOEXEC: "neither a program for this machine nor a script that begins with #!",
	unix.E2BIG:   "arguments and environment are too long for the stack limit",
	unix.EAGAIN:  "too many processes for the nproc limit",
}

// execFailed always makes status 126, because lookUp found the file a moment before.
func execFailed(file string, errno syscall.Errno) *initproto.ExecFailed {
	reason, ok := reasons[errno]
	if !ok {
		reason = errno.Error()
	}
	return &initproto.ExecFailed{Step: "execve", Errno: errno, ExitCode: initproto.ExitCannotExec,
		Message: fmt.Sprintf("%s: %s", file, reason)}
}
