package probe

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Argument is the first argument of a clove that is the probe.
const Argument = "policy-probe"

// Try is one action.
type Try struct {
	Kind   string // connect, read, write, exec, syscall, or that of a grant
	What   string // a path, HOST:PORT, or what a grant is asked for
	UDP    bool
	Number int32 // of the system call
	Args   [6]uint64
}

// Found is what happened.
type Found struct {
	Done      bool // nothing refused it
	Errno     int  // of what refused it
	Detail    string
	Untried   bool     // Detail says why
	Killed    bool     // the filter ended the process
	Addresses []string // that were connected to, with ports
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

// init is the probe where the filter would not let the rest of clove start.
func init() {
	if len(os.Args) < 2 || os.Args[1] != Argument {
		return
	}
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		Main(os.Args[2:], func(Try) Found {
			return Found{Untried: true, Detail: "the filter allows the socket, but not epoll, with which the probe waits"}
		})
	}
	syscall.Close(fd)
}

// Main is the program; rest tries connections and grants. It never returns.
func Main(args []string, rest func(Try) Found) {
	if len(args) != 1 {
		syscall.Exit(2)
	}
	all, ok := ParseOrders(args[0])
	if !ok {
		syscall.Exit(2)
	}
	for _, one := range all {
		if write([]byte(one.found(rest).Line())) != nil {
			syscall.Exit(1)
		}
	}
	syscall.Exit(0)
}

// write is without os.File, whose poller needs epoll.
func write(text []byte) error {
	for len(text) > 0 {
		n, err := syscall.Write(syscall.Stdout, text)
		if err != nil && !errors.Is(err, syscall.EINTR) {
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
	family, kind := syscall.AF_UNIX, syscall.SOCK_STREAM
	if t.Kind == Connect {
		family = syscall.AF_INET
	}
	if t.UDP {
		kind = syscall.SOCK_DGRAM
	}
	fd, err := syscall.Socket(family, kind|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return Refused(err, "socket")
	}
	syscall.Close(fd)
	return rest(t)
}

// Refused is what is found where a step fails.
func Refused(err error, step string) Found {
	f := Found{Detail: step + ": " + err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		f.Errno = int(errno)
	}
	return f
}
