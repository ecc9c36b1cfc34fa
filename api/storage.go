package api

import (
	"errors"
	"syscall"
)

// isStorage tells whether err came from a disk that is full or fails.
func isStorage(err error) bool {
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}
