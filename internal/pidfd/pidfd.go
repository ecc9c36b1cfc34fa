// Package pidfd tells what pidfd_open(2) means when it opens nothing. It opens
// nothing itself.
package pidfd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Gone tells whether err, of an opening of a number that once was a process's,
// says that no process has it any more. A thread has it then where the kernel says
// EINVAL, or ENOENT, as newer ones do: both take their numbers out of the same
// supply, and no number is a thread's and another process's.
func Gone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT)
}
