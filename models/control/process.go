package control

import (
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
)

// The programs, which are installed beside clove-gate.
const (
	frontProgram    = "clove-models"
	upstreamProgram = "clove-upstream"
)

// stream makes two connected sockets.
func stream() (near, far *os.File, err error) {
	return passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
}
