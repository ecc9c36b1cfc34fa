package confine

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowedCall is one allowed system call. If it has tests, one of them must hold. A test that does
// not hold continues at the next one.
type allowedCall struct {
	// In the kernel's numbering of the architecture that this binary was built for.
	number uint32
	tests  []program
	refuse bool // fails with EPERM instead of killing the process
}

// allowedCalls are the system calls that the gate and Go's runtime need. Those of the relay come
// first: for calls with argument tests the kernel runs the filter each time, while it
// caches the result for the others (seccomp's action cache, Linux 5.11).
func allowedCalls(pid int) []allowedCall {
	return []allowedCall{
		{number: unix.SYS_SPLICE}, {number: unix.SYS_EPOLL_PWAIT}, {number: unix.SYS_FUTEX},
		{number: unix.SYS_READ}, {number: unix.SYS_WRITE}, {number: unix.SYS_RECVFROM},
		// Reads how many bytes wait in a socket. Any other ioctl could change interfaces or
		// the socket.
		{number: unix.SYS_IOCTL, tests: one(equal(1, unix.TIOCINQ))},
		// There is no connect and no sendto: the sockets that leave the host are connected
		// by the broker, and come through the channel.
		{number: unix.SYS_RECVMSG}, {number: unix.SYS_SENDMSG, tests: one(without(2, unix.MSG_FASTOPEN))},
		{number: unix.SYS_ACCEPT4}, {number: unix.SYS_SHUTDOWN}, {number: unix.SYS_CLOSE}, {number: unix.SYS_PIPE2},
		{number: unix.SYS_GETSOCKNAME}, {number: unix.SYS_GETPEERNAME}, {number: unix.SYS_GETSOCKOPT},
		// Without the test, options such as SO_ATTACH_FILTER, IP_OPTIONS and SO_RCVBUFFORCE
		// could be set.
		{number: unix.SYS_SETSOCKOPT, tests: socketOptions()},
		// Pipes get a size, and Go's poller reads and sets O_NONBLOCK. Leases, seals and
		// owners of signals are not among the commands.
		{number: unix.SYS_FCNTL, tests: anyOf(1, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD_CLOEXEC, unix.F_SETPIPE_SZ, unix.F_GETFD, unix.F_SETFD)},
		{number: unix.SYS_EPOLL_CTL},
		// Go's runtime.
		{number: unix.SYS_NANOSLEEP}, {number: unix.SYS_SCHED_YIELD}, {number: unix.SYS_CLOCK_GETTIME},
		// No mapping is ever executable: mmap refuses PROT_EXEC, and mprotect is not in the
		// table.
		{number: unix.SYS_MADVISE}, {number: unix.SYS_MUNMAP}, {number: unix.SYS_MMAP, tests: one(without(2, unix.PROT_EXEC))},
		// Only threads. clone3 is not in the table, because its flags are in memory, where
		// a filter cannot read them.
		{number: unix.SYS_CLONE, tests: anyOf(0, threadFlags, threadFlags|unix.CLONE_SETTLS)},
		// Go's runtime sends SIGURG to its own threads, to preempt goroutines.
		{number: unix.SYS_SIGALTSTACK}, {number: unix.SYS_RT_SIGPROCMASK}, {number: unix.SYS_RT_SIGACTION}, {number: unix.SYS_RT_SIGRETURN},
		{number: unix.SYS_RESTART_SYSCALL},
		{number: unix.SYS_GETPID}, {number: unix.SYS_GETTID}, {number: unix.SYS_TGKILL, tests: one(equal(0, uint32(pid)))},
		{number: unix.SYS_GETRANDOM}, {number: unix.SYS_EXIT}, {number: unix.SYS_EXIT_GROUP},
		{number: unix.SYS_PRCTL, tests: anyOf(0, unix.PR_SET_VMA, unix.PR_GET_SECCOMP)}, // names of memory; the probe
		{number: unix.SYS_PRLIMIT64, tests: one(null(2))},                               // to read a limit
		{number: unix.SYS_SECCOMP},                                                      // for the second filter, which forbids it
		// The probe's, and what the standard library may try. EPERM and not the end of the
		// process.
		{number: unix.SYS_OPENAT, refuse: true}, {number: unix.SYS_SOCKET, refuse: true},
	}
}

// threadFlags are the flags with which Go makes a thread (newosproc); on amd64 it adds
// CLONE_SETTLS. Any other combination, for example a process or a namespace, is not
// allowed.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD

// socketOptions are those that Go's net package and the gate set. IP_OPTIONS, socket
// filters and upper-layer protocols are not among them.
func socketOptions() []program {
	var tests []program
	for _, option := range []struct{ level, name uint32 }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY}, {unix.SOL_SOCKET, unix.SO_LINGER}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE},
		{unix.SOL_SOCKET, unix.SO_RCVBUF}, {unix.SOL_SOCKET, unix.SO_SNDBUF},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
		{unix.SOL_IP, unix.IP_RECVORIGDSTADDR}, {unix.SOL_IPV6, unix.IPV6_RECVORIGDSTADDR},
	} {
		tests = append(tests, both(equal(1, option.level), equal(2, option.name)))
	}
	return tests
}

// instructions return an action for c's number, and for all others jump to their end. The
// number is in the accumulator before and after: a test overwrites it, but then
// the block ends in an action. The kill at the end is for arguments that no test allows.
func (c allowedCall) instructions() program {
	action := allow
	if c.refuse {
		action = refuse
	}
	if len(c.tests) == 0 {
		return onlyFor(c.number, program{action})
	}
	var block program
	for _, test := range c.tests {
		block = append(append(block, test...), action)
	}
	return onlyFor(c.number, append(block, kill))
}

// one is for a call with a single test.
func one(test program) []program { return []program{test} }

// anyOf allows an argument to have any of these values, and no bits besides.
func anyOf(arg int, values ...uint32) []program {
	var tests []program
	for _, value := range values {
		tests = append(tests, equal(arg, value))
	}
	return tests
}

// A test that does not hold skips one instruction, the action after it. Tests read only the
// lower half of an argument: these arguments are int in the kernel, or flags whose upper
// half it ignores.
//
// equal holds if the argument has this value.
func equal(arg int, value uint32) program {
	return program{loadArg(arg), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: 1}}
}

// without holds if none of the bits is set.
func without(arg int, bits uint32) program {
	return program{loadArg(arg), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipTrue: 1}}
}

// null tests a whole pointer: an address with only upper bits is one, too.
func null(arg int) program {
	return both(program{loadArgUpper(arg), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1}}, equal(arg, 0))
}

// both holds where two tests hold: if the first does not, it also skips the second.
func both(first, second program) program {
	last := len(first) - 1
	jump := first[last].(bpf.JumpIf)
	jump.SkipTrue += uint8(len(second))
	return append(append(append(program{}, first[:last]...), jump), second...)
}
