package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The tests try the real kernel: this test binary, started again under probeName, loads the
// filters and tries one action.
const probeName = "confine-test-probe"

func TestMain(m *testing.M) {
	if os.Args[0] == probeName {
		probeMain(os.Args[1], os.Args[2] == "filtered")
	}
	os.Exit(m.Run())
}

// attempt is one action that an attacker in the gate could try. Control: each works without
// the filters.
type attempt struct {
	do   func() error
	ends syscall.Signal // 0: it fails with EPERM
}

var attempts = map[string]attempt{
	"open":      {do: func() error { return closing(unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)) }},
	"socket":    {do: func() error { return closing(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)) }},
	"pair":      {do: socketPair, ends: unix.SIGSYS},
	"exec":      {do: func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) }, ends: unix.SIGSYS},
	"fork":      {do: fork, ends: unix.SIGSYS},
	"connect":   {do: connectAgain, ends: unix.SIGSYS},
	"divert":    {do: divert, ends: unix.SIGSYS},
	"fast open": {do: fastOpen, ends: unix.SIGSYS},
	"signal":    {do: func() error { return unix.Kill(os.Getppid(), 0) }, ends: unix.SIGSYS},
	"code":      {do: mapCode, ends: unix.SIGSYS},
}

// Made before the filters are on.
var (
	outsideUDP int // connected to one address
	otherUDP   unix.Sockaddr
	listening  int // a listener in the host's namespace, as a published port's
	otherTCP   unix.Sockaddr
)

func TestTheKernelHolds(t *testing.T) {
	for name, a := range attempts {
		t.Run(name, func(t *testing.T) {
			if state, output := runProbe(t, name, "bare"); !state.Success() {
				t.Fatalf("control: %s, %s", state, output)
			}
			state, output := runProbe(t, name, "filtered")
			status := state.Sys().(syscall.WaitStatus)
			if a.ends == 0 && (status.ExitStatus() != 1 || !strings.Contains(output, unix.EPERM.Error())) {
				t.Errorf("%s, %s", state, output)
			}
			if a.ends != 0 && (!status.Signaled() || status.Signal() != a.ends) {
				t.Errorf("%s, %s; want %s", state, output, a.ends)
			}
		})
	}
}

func runProbe(t *testing.T, name, how string) (*os.ProcessState, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self)
	command.Args = []string{probeName, name, how}
	output, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState, string(output)
}

// probeMain loads the filters on this thread only: a test binary may be linked with the C
// library, whose threads Go's runtime does not control.
func probeMain(name string, filtered bool) {
	runtime.LockOSThread()
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fail(prepare())
	if filtered {
		fail(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		p, err := callFilter(os.Getpid())
		fail(err)
		fail(onThisThread(p))
		p, err = destinationFilter([]int{2})
		fail(err)
		fail(onThisThread(p))
	}
	err := attempts[name].do()
	if err != nil { // not with fmt: it could run on another thread, which has no filter
		_, _ = unix.Write(1, []byte(err.Error()))
		unix.Exit(1)
	}
	unix.Exit(0)
}

func onThisThread(p program) error {
	filter, err := assemble(p)
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

func prepare() error {
	allowed, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	other, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	loopback := [4]byte{127, 0, 0, 1}
	otherUDP = &unix.SockaddrInet4{Addr: loopback, Port: other.LocalAddr().(*net.UDPAddr).Port}
	otherTCP = &unix.SockaddrInet4{Addr: loopback, Port: server.Addr().(*net.TCPAddr).Port}
	if outsideUDP, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0); err != nil {
		return err
	}
	if err := unix.Connect(outsideUDP, &unix.SockaddrInet4{Addr: loopback, Port: allowed.LocalAddr().(*net.UDPAddr).Port}); err != nil {
		return err
	}
	if listening, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err != nil {
		return err
	}
	return errors.Join(unix.Bind(listening, &unix.SockaddrInet4{Addr: loopback}), unix.Listen(listening, 1))
}

func closing(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func socketPair() error {
	_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	return err
}

func fork() error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

func connectAgain() error { return unix.Connect(outsideUDP, otherUDP) }

// divert sends from a connected socket to another address.
func divert() error { return unix.Sendmsg(outsideUDP, []byte("x"), nil, otherUDP, 0) }

// fastOpen turns a listener into a client without connect(2).
func fastOpen() error {
	if err := unix.Shutdown(listening, unix.SHUT_RD); err != nil {
		return err
	}
	return unix.Sendmsg(listening, []byte("x"), nil, otherTCP, unix.MSG_FASTOPEN)
}

func mapCode() error {
	_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	return err
}
