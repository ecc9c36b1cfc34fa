package confine

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// program is a seccomp filter before it is assembled.
type program []bpf.Instruction

// Offsets in struct seccomp_data, seccomp(2). Both architectures are little endian, so the
// lower half of an argument comes first.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
	argBytes     = 8
)

var (
	allow  = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	// It ends the whole process, not just the thread: a process that was taken over must
	// not go on with the rest.
	kill = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
)

// auditArch maps each architecture that clove is built for to the kernel's name of it.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// callFilter is the filter of the calls table. A number that is not in the table reaches
// the kill at the end. So do x32 calls: their numbers have a bit that no number in the
// table has.
func callFilter(pid int) (program, error) {
	p, err := begin()
	if err != nil {
		return nil, err
	}
	for _, c := range allowedCalls(pid) {
		p = append(p, c.instructions()...)
	}
	return append(p, kill), nil
}

// begin kills calls of every other architecture, where the numbers mean other calls, and
// loads the number.
func begin() (program, error) {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return nil, errors.New("cannot make a filter for " + runtime.GOARCH)
	}
	return program{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}, nil
}

// destinationFilter allows sendmsg on the given descriptors only, and keeps them from being
// replaced: the first filter has no dup2, so a number that cannot be closed cannot become
// another socket. A close of them fails instead of killing, because Go closes descriptors
// that it no longer needs.
func destinationFilter(pinned []int) (program, error) {
	p, err := begin()
	if err != nil {
		return nil, err
	}
	// The filters are installed one after the other, and the kernel applies both: the
	// stricter action counts. So this one may allow everything that it does not restrict.
	sending, closing := program{loadArg(0)}, program{loadArg(0)}
	for _, fd := range pinned {
		sending = append(sending, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(fd), SkipTrue: 1}, allow)
		closing = append(closing, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(fd), SkipTrue: 1}, refuse)
	}
	p = append(p, onlyFor(unix.SYS_SENDMSG, append(sending, kill))...)
	p = append(p, onlyFor(unix.SYS_CLOSE, append(closing, allow))...)
	p = append(p, onlyFor(unix.SYS_SECCOMP, program{kill})...)
	return append(p, allow), nil
}

// onlyFor skips block, which ends in an action, for all other numbers. A conditional jump
// reaches 255 instructions, so a block must not be longer.
func onlyFor(number uint32, block program) program {
	return append(program{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(block))}}, block...)
}

// loadArg loads the lower half of argument n. Arguments have 64 bits, classic BPF's
// accumulator has 32.
func loadArg(n int) bpf.Instruction {
	return bpf.LoadAbsolute{Off: uint32(offsetArgs + n*argBytes), Size: 4}
}

// loadArgUpper loads the upper half of argument n.
func loadArgUpper(n int) bpf.Instruction {
	return bpf.LoadAbsolute{Off: uint32(offsetArgs + n*argBytes + 4), Size: 4}
}

// Destinations loads the filter after which sendmsg(2) works on the given descriptors only.
func Destinations(pinned ...int) error { return install(destinationFilter(pinned)) }

// install loads the filter on all present and future threads. Threads that Go's runtime
// starts later inherit the filter from the thread that starts them.
func install(p program, err error) error {
	if err != nil {
		return err
	}
	filter, err := assemble(p)
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// With TSYNC the result is the id of a thread that could not be synchronised, if there is one.
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("cannot install filter: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("cannot install filter on thread %d", thread)
	}
	return nil
}

// assemble converts the instructions to the form of seccomp(2).
func assemble(p program) ([]unix.SockFilter, error) {
	raw, err := bpf.Assemble(p)
	if err != nil {
		return nil, fmt.Errorf("cannot assemble filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter, nil
}
