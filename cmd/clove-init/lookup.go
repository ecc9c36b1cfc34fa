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

// lookUp finds the file that command names, as the agent sees files: itself
// where it has a slash, else the first executable file in env's PATH. An empty
// entry of PATH is the working directory (POSIX.1, 8.3).
func lookUp(command string, env []string) (string, *initproto.ExecFailed) {
	if strings.Contains(command, "/") {
		if errno := executable(command); errno != 0 {
			return "", lookUpFailed(command, errno)
		}
		return command, nil
	}
	refused := "" // the first that is there and may not be executed
	for _, folder := range strings.Split(variable(env, "PATH"), ":") {
		if folder == "" {
			folder = "."
		}
		// Not path.Join, which would make "x" of "./x": a name to look up.
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

// executable gives 0, or why the caller may not execute the file.
func executable(file string) syscall.Errno {
	var stat unix.Stat_t
	if err := unix.Stat(file, &stat); err != nil {
		return err.(syscall.Errno)
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	if err := unix.Access(file, unix.X_OK); err != nil {
		return err.(syscall.Errno)
	}
	return 0
}

// variable gives the value of the first name in env, as getenv(3) would.
func variable(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// notFound are the errors that say that there is no such file at all.
func notFound(errno syscall.Errno) bool { return errno == unix.ENOENT || errno == unix.ENOTDIR }

func lookUpFailed(file string, errno syscall.Errno) *initproto.ExecFailed {
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

// reasons are what execve(2)'s errors mean for a file that lookUp found.
var reasons = map[syscall.Errno]string{
	unix.ENOENT:  "its interpreter or loader is not in the sandbox",
	unix.ENOEXEC: "neither a program for this machine nor a script that begins with #!",
	unix.E2BIG:   "arguments and environment are too long for the stack limit",
	unix.EAGAIN:  "too many processes for the nproc limit",
}

// execFailed always is status 126: the file was there a moment ago.
func execFailed(file string, errno syscall.Errno) *initproto.ExecFailed {
	reason, ok := reasons[errno]
	if !ok {
		reason = errno.Error()
	}
	return &initproto.ExecFailed{Step: "execve", Errno: errno, ExitCode: initproto.ExitCannotExec,
		Message: fmt.Sprintf("%s: %s", file, reason)}
}
