package confine

import (
	"encoding/binary"
	"runtime"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const gatePID = 1

// returned runs a filter as the kernel would. struct seccomp_data is little endian there; the
// interpreter loads big endian.
func returned(t *testing.T, vm *bpf.VM, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, offsetArgs+6*argBytes)
	binary.BigEndian.PutUint32(data[offsetNumber:], number)
	binary.BigEndian.PutUint32(data[offsetArch:], arch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[offsetArgs+i*argBytes:], uint32(arg))
		binary.BigEndian.PutUint32(data[offsetArgs+i*argBytes+4:], uint32(arg>>32))
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}

func machine(t *testing.T, p program, err error) *bpf.VM {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(p)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

const (
	allowed = uint32(unix.SECCOMP_RET_ALLOW)
	killed  = uint32(unix.SECCOMP_RET_KILL_PROCESS)
	refused = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
)

func TestCalls(t *testing.T) {
	p, err := callFilter(gatePID)
	vm := machine(t, p, err)
	native := auditArch[runtime.GOARCH]
	const upper = 1 << 32
	for _, c := range []struct {
		name   string
		number uint32
		args   []uint64
		want   uint32
	}{
		{"splice", unix.SYS_SPLICE, nil, allowed},
		{"accept4", unix.SYS_ACCEPT4, nil, allowed},
		{"openat", unix.SYS_OPENAT, nil, refused},
		{"socket", unix.SYS_SOCKET, nil, refused},
		{"openat2", unix.SYS_OPENAT2, nil, killed},
		{"socketpair", unix.SYS_SOCKETPAIR, nil, killed},
		{"connect", unix.SYS_CONNECT, nil, killed},
		{"bind", unix.SYS_BIND, nil, killed},
		{"listen", unix.SYS_LISTEN, nil, killed},
		{"sendto", unix.SYS_SENDTO, nil, killed},
		{"sendmmsg", unix.SYS_SENDMMSG, nil, killed},
		{"io_uring", unix.SYS_IO_URING_SETUP, nil, killed},
		{"execve", unix.SYS_EXECVE, nil, killed},
		{"execveat", unix.SYS_EXECVEAT, nil, killed},
		{"ptrace", unix.SYS_PTRACE, nil, killed},
		{"kill", unix.SYS_KILL, nil, killed},
		{"dup3", unix.SYS_DUP3, nil, killed},
		{"close_range", unix.SYS_CLOSE_RANGE, nil, killed},
		{"mount", unix.SYS_MOUNT, nil, killed},
		{"unlinkat", unix.SYS_UNLINKAT, nil, killed},
		{"bpf", unix.SYS_BPF, nil, killed},
		{"unshare", unix.SYS_UNSHARE, nil, killed},
		{"clone3", unix.SYS_CLONE3, nil, killed},
		{"a thread", unix.SYS_CLONE, []uint64{threadFlags}, allowed},
		{"a process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, killed},
		{"a thread in a namespace", unix.SYS_CLONE, []uint64{threadFlags | unix.CLONE_NEWNET}, killed},
		{"own thread's signal", unix.SYS_TGKILL, []uint64{gatePID}, allowed},
		{"another's signal", unix.SYS_TGKILL, []uint64{gatePID + 1}, killed},
		{"memory", unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ | unix.PROT_WRITE}, allowed},
		{"code", unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, killed},
		{"mprotect", unix.SYS_MPROTECT, nil, killed},
		{"FIONREAD", unix.SYS_IOCTL, []uint64{3, unix.TIOCINQ}, allowed},
		{"another ioctl", unix.SYS_IOCTL, []uint64{3, unix.SIOCGIFCONF}, killed},
		{"sendmsg", unix.SYS_SENDMSG, []uint64{3, 0, unix.MSG_NOSIGNAL}, allowed},
		{"sendmsg that connects", unix.SYS_SENDMSG, []uint64{3, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, killed},
		{"linger", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_LINGER}, allowed},
		{"keep-alive", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_KEEPCNT}, allowed},
		{"small buffers", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_RCVBUF}, allowed},
		{"buffers beyond the host's limit", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE}, killed},
		{"its number at another level", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_IP, unix.SO_KEEPALIVE}, killed},
		{"source route", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_IP, unix.IP_OPTIONS}, killed},
		{"socket filter", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}, killed},
		{"read a limit", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 0, 99}, allowed},
		{"set a limit", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 99, 0}, killed},
		{"set a limit, pointer's upper half", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, upper, 0}, killed},
		{"dup", unix.SYS_FCNTL, []uint64{3, unix.F_DUPFD_CLOEXEC}, allowed},
		{"lease", unix.SYS_FCNTL, []uint64{3, unix.F_SETLEASE}, killed},
		{"name of memory", unix.SYS_PRCTL, []uint64{unix.PR_SET_VMA}, allowed},
		{"dumpable again", unix.SYS_PRCTL, []uint64{unix.PR_SET_DUMPABLE, 1}, killed},
		{"x32", unix.SYS_SPLICE | 0x40000000, nil, killed},
		{"no call", 9999, nil, killed},
	} {
		if got := returned(t, vm, native, c.number, c.args...); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	if got := returned(t, vm, unix.AUDIT_ARCH_I386, unix.SYS_SPLICE); got != killed {
		t.Errorf("32 bit: %#x", got)
	}
}

func TestEveryNumberOutsideTheTableKills(t *testing.T) {
	p, err := callFilter(gatePID)
	vm := machine(t, p, err)
	listed := map[uint32]bool{}
	for _, c := range allowedCalls(gatePID) {
		if listed[c.number] {
			t.Errorf("call %d is listed twice", c.number)
		}
		listed[c.number] = true
	}
	for number := range uint32(1024) {
		got := returned(t, vm, auditArch[runtime.GOARCH], number)
		if !listed[number] && got != killed {
			t.Errorf("call %d: %#x", number, got)
		}
	}
}

func TestDestinations(t *testing.T) {
	p, err := destinationFilter([]int{7, 4})
	vm := machine(t, p, err)
	for _, c := range []struct {
		number uint32
		fd     uint64
		want   uint32
	}{
		{unix.SYS_SENDMSG, 4, allowed}, {unix.SYS_SENDMSG, 7, allowed}, {unix.SYS_SENDMSG, 5, killed}, {unix.SYS_SENDMSG, 0, killed},
		{unix.SYS_CLOSE, 4, refused}, {unix.SYS_CLOSE, 7, refused}, {unix.SYS_CLOSE, 5, allowed},
		{unix.SYS_SECCOMP, 0, killed}, {unix.SYS_READ, 5, allowed},
	} {
		if got := returned(t, vm, auditArch[runtime.GOARCH], c.number, c.fd); got != c.want {
			t.Errorf("call %d on %d: %#x, want %#x", c.number, c.fd, got, c.want)
		}
	}
	if got := returned(t, vm, unix.AUDIT_ARCH_I386, unix.SYS_READ); got != killed {
		t.Errorf("32 bit: %#x", got)
	}
}
