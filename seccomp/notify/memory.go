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
	text, err := l.read(call, address, most, func(part []byte) bool { return bytes.IndexByte(part, 0) >= 0 })
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return string(text), err
}

// Bytes reads at most this many bytes, and fewer where the caller's memory ends earlier.
func (l *Listener) Bytes(call Call, address uint64, most int) ([]byte, error) {
	return l.read(call, address, most, func([]byte) bool { return false })
}

// read ends after the part with which it is enough.
func (l *Listener) read(call Call, address uint64, most int, enough func(part []byte) bool) ([]byte, error) {
	var whole []byte
	part := make([]byte, min(most, pageBytes))
	for len(whole) < most {
		from := address + uint64(len(whole))
		// To the end of the page and no further: the next one may not be there, and then
		// the kernel reads nothing of a part that begins before it.
		want := min(most-len(whole), pageBytes-int(from%pageBytes))
		local := []unix.Iovec{{Base: &part[0], Len: uint64(want)}}
		n, err := unix.ProcessVMReadv(int(call.Thread), local, []unix.RemoteIovec{{Base: uintptr(from), Len: want}}, 0)
		if err != nil || n <= 0 {
			break
		}
		whole = append(whole, part[:n]...)
		if enough(part[:n]) {
			break
		}
	}
	if !l.Valid(call) {
		return nil, errGone
	}
	if len(whole) == 0 && most > 0 {
		return nil, unix.EFAULT
	}
	return whole, nil
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

// File is the path behind a descriptor of the caller's, as the sandbox has it; empty if it
// cannot be read.
func (l *Listener) File(call Call, fd int32) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", call.Thread, fd))
	if err != nil || !l.Valid(call) {
		return ""
	}
	return path
}
