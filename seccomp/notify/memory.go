package notify

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Text reads the string at an address of the caller, up to its NUL or to most bytes. The
// package's comment says what it is good for.
func (l *Listener) Text(call Call, address uint64, most int) (string, error) {
	text, err := l.bytes(call, address, most)
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return string(text), err
}

// bytes reads at most this many bytes, and fewer where the caller's memory ends earlier or a
// page has a NUL.
func (l *Listener) bytes(call Call, address uint64, most int) ([]byte, error) {
	buffer := make([]byte, most)
	read := 0
	for read < most {
		// To the end of the page and no further: the next one may not be there, and then
		// the kernel reads nothing of a part that begins before it.
		part := min(most-read, pageBytes-int((address+uint64(read))%pageBytes))
		local := []unix.Iovec{{Base: &buffer[read], Len: uint64(part)}}
		remote := []unix.RemoteIovec{{Base: uintptr(address) + uintptr(read), Len: part}}
		n, err := unix.ProcessVMReadv(int(call.Thread), local, remote, 0)
		if err != nil || n <= 0 {
			break
		}
		done := bytes.IndexByte(buffer[read:read+n], 0) >= 0
		if read += n; done {
			break
		}
	}
	if !l.Valid(call) {
		return nil, errGone
	}
	if read == 0 && most > 0 {
		return nil, unix.EFAULT
	}
	return buffer[:read], nil
}

const pageBytes = 4096

// Program is the path of the caller's program, as the sandbox has it; empty if it cannot be
// read.
func (l *Listener) Program(call Call) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", call.Thread))
	if err != nil || !l.Valid(call) {
		return ""
	}
	return path
}
