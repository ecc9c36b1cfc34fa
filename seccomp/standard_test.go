package seccomp

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// high is a bit that the kernel drops when it reads an int.
const high = 1 << 32

// standardCalls are the answers of standard, row by row.
var standardCalls = []struct {
	call call
	want string
}{
	// Calls of ordinary programs.
	{call{name: "read"}, "allow"},
	{call{name: "openat"}, "allow"},
	{call{name: "execve"}, "allow"},
	{call{name: "futex"}, "allow"},
	{call{name: "rseq"}, "allow"},
	{call{name: "statx"}, "allow"},
	{call{name: "prlimit64"}, "allow"},
	{call{name: "memfd_create"}, "allow"},
	{call{name: "shmget"}, "allow"},
	// dpkg, apt and clove-init, in a user namespace.
	{call{name: "fchownat"}, "allow"},
	{call{name: "setgroups"}, "allow"},
	{call{name: "setresuid"}, "allow"},
	{call{name: "capset"}, "allow"},
	{call{name: "prctl"}, "allow"},
	{call{name: "waitid"}, "allow"},
	{call{name: "timerfd_create"}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSCTTY}}, "allow"},

	// Namespaces: a thread, a fork, vfork, and each flag that makes a new namespace.
	{call{name: "clone", args: [6]uint64{0x3d0f00}}, "allow"},
	{call{name: "clone", args: [6]uint64{uint64(unix.SIGCHLD)}}, "allow"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_VFORK | unix.CLONE_VM | unix.CLONE_PIDFD | uint64(unix.SIGCHLD)}}, "allow"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_NEWUSER}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_NEWNS | uint64(unix.SIGCHLD)}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_NEWNET | high}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_NEWPID | 0x3d0f00}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_NEWCGROUP}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_NEWUTS}}, "EPERM"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_NEWIPC}}, "EPERM"},
	{call{name: "clone3"}, "ENOSYS"},
	{call{name: "unshare"}, "EPERM"},
	{call{name: "setns"}, "EPERM"},
	{call{name: "chroot"}, "EPERM"},

	// Sockets.
	{call{name: "socket", args: [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}}, "allow"},
	{call{name: "socket", args: [6]uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC}}, "allow"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK}}, "allow"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}}, "allow"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}}, "allow"},
	{call{name: "socket", args: [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE}}, "allow"},
	{call{name: "socket", args: [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT}}, "EPROTONOSUPPORT"},
	{call{name: "socket", args: [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_PACKET, unix.SOCK_RAW}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_BLUETOOTH, unix.SOCK_RAW}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_TIPC, unix.SOCK_SEQPACKET}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_XDP, unix.SOCK_RAW}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET, unix.SOCK_DCCP}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}}, "EPERM"},
	{call{name: "socketpair", args: [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}}, "allow"},
	{call{name: "socketpair", args: [6]uint64{unix.AF_TIPC, unix.SOCK_STREAM}}, "EPERM"},

	// Programs in the kernel.
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET | high, unix.SO_ATTACH_FILTER | high}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_BPF}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_EBPF}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, unix.SO_DETACH_FILTER}}, "allow"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, unix.SO_REUSEPORT}}, "allow"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.IPPROTO_IPV6, unix.SO_ATTACH_FILTER}}, "allow"}, // IPV6_V6ONLY
	{call{name: "setsockopt", args: [6]uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}}, "allow"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.IPPROTO_TCP, unix.TCP_MD5SIG}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.IPPROTO_TCP | high, unix.TCP_MD5SIG_EXT | high}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.IPPROTO_TCP, tcpAddKey}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.IPPROTO_UDP, unix.TCP_MD5SIG}}, "allow"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_VSOCK, 0}}, "allow"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER}}, "EINVAL"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_SECCOMP | high, unix.SECCOMP_MODE_FILTER}}, "EINVAL"},
	{call{name: "prctl", args: [6]uint64{unix.PR_GET_SECCOMP}}, "allow"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_NAME}}, "allow"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_VMA}}, "allow"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_PTRACER}}, "allow"},
	{call{name: "seccomp", args: [6]uint64{unix.SECCOMP_SET_MODE_FILTER}}, "ENOSYS"},

	// Bits that the kernel drops change no answer.
	{call{name: "socket", args: [6]uint64{unix.AF_INET | high, unix.SOCK_STREAM | high, high}}, "allow"},
	{call{name: "socket", args: [6]uint64{unix.AF_ALG | high, unix.SOCK_SEQPACKET}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_NETLINK | high, unix.SOCK_RAW, unix.NETLINK_AUDIT | high}}, "EPROTONOSUPPORT"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSTI}}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSTI | high}}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSTI | 1<<63}}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCLINUX}}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCLINUX | high}}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSETD}}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TCGETS}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSTI + 1}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSTI - 1}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, 0xffffffff}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, 0}}, "allow"},
	{call{name: "ptrace"}, "allow"},
	{call{name: "process_vm_writev"}, "allow"},
	{call{name: "pidfd_getfd"}, "EPERM"},
	{call{name: "personality", args: [6]uint64{0xffffffff}}, "allow"},
	{call{name: "personality", args: [6]uint64{0xffffffffffffffff}}, "allow"},
	{call{name: "personality", args: [6]uint64{0x0040000}}, "allow"}, // ADDR_NO_RANDOMIZE
	{call{name: "personality", args: [6]uint64{0x0040000 | high}}, "allow"},
	{call{name: "personality", args: [6]uint64{0x0060008}}, "allow"},
	{call{name: "personality", args: [6]uint64{0x0440000}}, "EPERM"}, // and READ_IMPLIES_EXEC
	{call{name: "personality", args: [6]uint64{0x0400000}}, "EPERM"},
	{call{name: "personality", args: [6]uint64{0x0100000}}, "EPERM"}, // MMAP_PAGE_ZERO

	// Files by type.
	{call{name: "mknodat", args: [6]uint64{0, 0, unix.S_IFIFO | 0o600}}, "allow"},
	{call{name: "mknodat", args: [6]uint64{0, 0, unix.S_IFSOCK | 0o777}}, "allow"},
	{call{name: "mknodat", args: [6]uint64{0, 0, 0o644}}, "allow"},
	{call{name: "mknodat", args: [6]uint64{0, 0, unix.S_IFREG | 0o644}}, "allow"},
	{call{name: "mknodat", args: [6]uint64{0, 0, unix.S_IFCHR | 0o600}}, "EPERM"},
	{call{name: "mknodat", args: [6]uint64{0, 0, unix.S_IFBLK | 0o600}}, "EPERM"},
	{call{name: "mknodat", args: [6]uint64{0, 0, unix.S_IFCHR | high}}, "EPERM"},

	// Memory that is reserved on the host for others, and overlayfs.
	{call{name: "mmap", args: [6]uint64{0, 4096, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE}}, "allow"},
	{call{name: "mmap", args: [6]uint64{0, 4096, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB}}, "EPERM"},
	{call{name: "mmap", args: [6]uint64{0, 4096, unix.PROT_READ, unix.MAP_HUGETLB | high}}, "EPERM"},
	{call{name: "memfd_create", args: [6]uint64{0, unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING}}, "allow"},
	{call{name: "memfd_create", args: [6]uint64{0, unix.MFD_HUGETLB}}, "EPERM"},
	{call{name: "shmget", args: [6]uint64{0, 4096, unix.IPC_CREAT | 0o600}}, "allow"},
	{call{name: "shmget", args: [6]uint64{0, 4096, unix.IPC_CREAT | shmHugeTLB}}, "EPERM"},
	{call{name: "renameat2", args: [6]uint64{0, 0, 0, 0, unix.RENAME_NOREPLACE}}, "allow"},
	{call{name: "renameat2", args: [6]uint64{0, 0, 0, 0, unix.RENAME_EXCHANGE}}, "allow"},
	{call{name: "renameat2", args: [6]uint64{0, 0, 0, 0, unix.RENAME_WHITEOUT}}, "EPERM"},

	// Numbers and tables of calls.
	{call{number: 460}, "ENOSYS"},
	{call{number: 1000}, "ENOSYS"},
	{call{number: 0x3fffffff}, "ENOSYS"},
	{call{name: "io_setup"}, "ENOSYS"},
}

func TestStandardAnswers(t *testing.T) {
	t.Parallel()
	f := compileBuiltin(t, Standard)
	for _, row := range standardCalls {
		if got := f.run(t, row.call); got != row.want {
			t.Errorf("%v: %s, want %s", row.call, got, row.want)
		}
	}
}

func TestStandardRefusesByName(t *testing.T) {
	t.Parallel()
	f := compileBuiltin(t, Standard)
	for _, row := range builtins()[0].refusals {
		want := "EPERM"
		if row.errno != 0 {
			want = unix.ErrnoName(unix.Errno(row.errno))
		}
		for _, name := range row.names {
			number, err := libseccomp.GetSyscallFromName(name)
			if err != nil || int32(number) < 0 {
				continue // newer than this libseccomp, or for another machine
			}
			if got := f.run(t, call{name: name}); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

// The calls of other machines in the table above exist on no machine that clove supports, so
// their refusal takes nothing away.
func TestForeignNamesAreForeign(t *testing.T) {
	t.Parallel()
	row := standardRefusals[len(standardRefusals)-1]
	if !strings.Contains(row.reason, "foreign") {
		t.Fatal("the row of foreign calls is not the last any more")
	}
	for _, arch := range []libseccomp.ScmpArch{libseccomp.ArchAMD64, libseccomp.ArchARM64} {
		for _, name := range row.names {
			if number, err := libseccomp.GetSyscallFromNameByArch(name, arch); err == nil && int32(number) >= 0 {
				t.Errorf("%s is call %d of %v", name, number, arch)
			}
		}
	}
}

// named reports whether a rule of p names the call.
func named(p *specs.LinuxSeccomp, name string) bool {
	return slices.ContainsFunc(p.Syscalls, func(rule specs.LinuxSyscall) bool { return slices.Contains(rule.Names, name) })
}

// Every call that the library knows is allowed, or refused with a reason.
func TestEveryCallIsDecided(t *testing.T) {
	t.Parallel()
	for _, level := range builtins() {
		p := mustProfile(t, level.name)
		for number := range 1000 {
			name, err := libseccomp.ScmpSyscall(number).GetName()
			if err != nil {
				continue
			}
			allowed := named(p, name)
			refused := level.refusalOf(name) != nil
			if !allowed && !refused {
				t.Errorf("%s: %s is neither allowed nor in a table of refusals", level.name, name)
			}
		}
	}
}

// docker's rules with conditions are not taken over, so each must have a row here.
func TestDockersConditionsAreReplaced(t *testing.T) {
	t.Parallel()
	docker, err := dockerDefault()
	if err != nil {
		t.Fatal(err)
	}
	level := builtins()[0]
	for _, rule := range docker.Syscalls {
		for _, name := range rule.Names {
			plain := rule.Action == "SCMP_ACT_ALLOW" && len(rule.Args) == 0
			if !plain && level.conditionOf(name) == nil && level.refusalOf(name) == nil {
				t.Errorf("docker's rule for %s is dropped and nothing stands in its place", name)
			}
		}
	}
}

func TestTablesAreSound(t *testing.T) {
	t.Parallel()
	for _, level := range builtins() {
		seen := map[string]string{}
		for _, row := range level.refusals {
			if row.reason == "" || strings.Contains(row.reason, "\n") {
				t.Errorf("%s: %q: a reason is one line", level.name, row.names)
			}
			for _, name := range row.names {
				if other, twice := seen[name]; twice {
					t.Errorf("%s: %s is refused twice: %q and %q", level.name, name, other, row.reason)
				}
				seen[name] = row.reason
			}
		}
		for _, row := range level.conditions {
			if _, twice := seen[row.name]; twice {
				t.Errorf("%s: %s has two rows", level.name, row.name)
			}
			seen[row.name] = row.reason
			if row.reason == "" || row.allowed == "" {
				t.Errorf("%s: %s: a condition says what and why", level.name, row.name)
			}
		}
		if err := check(mustProfile(t, level.name)); err != nil {
			t.Errorf("%s: %v", level.name, err)
		}
	}
}

// runc treats two comparisons of one argument as alternatives; check refuses them in the
// built-in profiles and in documents.
func TestBuiltinRulesCompareAnArgumentOnce(t *testing.T) {
	t.Parallel()
	for _, level := range builtins() {
		for _, rule := range mustProfile(t, level.name).Syscalls {
			var indexes []uint
			for _, arg := range rule.Args {
				if slices.Contains(indexes, arg.Index) {
					t.Errorf("%s: %v compares argument %d twice", level.name, rule.Names, arg.Index)
				}
				indexes = append(indexes, arg.Index)
				if arg.Op != "SCMP_CMP_MASKED_EQ" || arg.Value > 0xffffffff {
					t.Errorf("%s: %v looks at bits that the kernel drops", level.name, rule.Names)
				}
			}
		}
	}
}

// The kernel runs the program at every system call and accepts 4096 instructions at most.
func TestProgramsFitTheKernel(t *testing.T) {
	t.Parallel()
	for _, level := range builtins() {
		f := compileBuiltin(t, level.name)
		if len(f.instructions) > 4096/2 {
			t.Errorf("%s: %d instructions", level.name, len(f.instructions))
		}
		t.Logf("%s: %d instructions", level.name, len(f.instructions))
	}
}

func BenchmarkProfile(b *testing.B) {
	for b.Loop() {
		mustProfile(b, Standard)
	}
}

func BenchmarkCompile(b *testing.B) {
	p := mustProfile(b, Standard)
	for b.Loop() {
		if _, err := compile(p); err != nil {
			b.Fatal(err)
		}
	}
}
