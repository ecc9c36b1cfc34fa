package probe

import (
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Argument is the first argument of a clove that is the probe.
const Argument = "policy-probe"

// Try is one action.
type Try struct {
	Kind   string    `json:"kind"` // connect, read, write, exec, syscall, or that of a grant
	What   string    `json:"what"` // a path, HOST:PORT, or what a grant is asked for
	UDP    bool      `json:"udp,omitempty"`
	Number int32     `json:"number,omitempty"` // of the system call
	Args   [6]uint64 `json:"args,omitzero"`
}

// Found is what happened.
type Found struct {
	Done      bool     `json:"done"`            // nothing refused it
	Errno     int      `json:"errno,omitempty"` // of what refused it
	Detail    string   `json:"detail,omitempty"`
	Untried   bool     `json:"untried,omitempty"`   // Detail says why
	Killed    bool     `json:"killed,omitempty"`    // the filter ended the process
	Addresses []string `json:"addresses,omitempty"` // that were connected to, with ports
}

// CallTime is how long a system call may take.
const CallTime = 500 * time.Millisecond

// The kinds that package probe does not try itself are all others.
const (
	Connect = "connect"
	read    = "read"
	writing = "write"
	exec    = "exec"
	call    = "syscall"
)

// Needs are the system calls without which Go does not start: clove is linked with packages
// that open files at once.
var Needs = []string{"epoll_create1", "epoll_ctl", "eventfd2"}

// Main is the program; rest tries connections and grants. It never returns.
func Main(args []string, rest func(Try) Found) {
	status := 0
	var all []Try
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &all) != nil {
		status = 2
	}
	for _, one := range all {
		line, err := json.Marshal(one.found(rest))
		if err == nil {
			err = write(append(line, '\n'))
		}
		if err != nil {
			status = 1
			break
		}
	}
	unix.Exit(status)
}

// write is without os.File, whose poller needs epoll.
func write(text []byte) error {
	for len(text) > 0 {
		n, err := unix.Write(unix.Stdout, text)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		text = text[max(n, 0):]
	}
	return nil
}

func (t Try) found(rest func(Try) Found) Found {
	switch t.Kind {
	case read, writing, exec:
		return file(t.Kind, t.What)
	case call:
		return made(t.Number, t.Args)
	}
	family, kind := unix.AF_UNIX, unix.SOCK_STREAM
	if t.Kind == Connect {
		family = unix.AF_INET
	}
	if t.UDP {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Refused(err, "socket")
	}
	unix.Close(fd)
	return rest(t)
}

// Refused is what is found where a step fails.
func Refused(err error, step string) Found {
	f := Found{Detail: step + ": " + err.Error()}
	var errno unix.Errno
	if errors.As(err, &errno) {
		f.Errno = int(errno)
	}
	return f
}
