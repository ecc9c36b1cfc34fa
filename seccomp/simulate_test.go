package seccomp

import (
	"fmt"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filter is a profile as the kernel gets it.
type filter struct {
	instructions []bpf.Instruction
	vm           *bpf.VM
}

// filtered are the built-in profiles with a filter.
var filtered = []string{Standard, Strict, Minimal}

func mustProfile(t testing.TB, name string) *specs.LinuxSeccomp {
	t.Helper()
	p, err := Profile(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compileBuiltin(t testing.TB, name string) filter {
	t.Helper()
	f, err := compile(mustProfile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// compile makes the program of a profile, with an interpreter for it.
func compile(p *specs.LinuxSeccomp) (filter, error) {
	program, err := compileProfile(p)
	if err != nil {
		return filter{}, err
	}
	vm, err := bpf.NewVM(program)
	return filter{program, vm}, err
}

// call is one system call as the filter sees it.
type call struct {
	name string // of the native table; empty: number counts
	arch uint32 // 0: native
	// number is added to the name's, so that it can carry the x32 bit
	number uint32
	args   [6]uint64
}

func (c call) String() string { return fmt.Sprintf("%s+%#x%#x", c.name, c.number, c.args) }

// failer is the common interface of a test and a property test.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// run returns the filter's answer: "allow", "kill", "log", "trap" or an errno.
func (f filter) run(t failer, c call) string {
	t.Helper()
	native, err := libseccomp.GetNativeArch()
	if err != nil {
		t.Fatal(err)
	}
	number := c.number
	if c.name != "" {
		named, err := libseccomp.GetSyscallFromNameByArch(c.name, native)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		number += uint32(named)
	}
	if c.arch == 0 {
		c.arch = nativeAuditArch[native.String()]
	}
	answer, err := f.vm.Run(seccompData(number, c.arch, c.args))
	if err != nil {
		t.Fatal(err)
	}
	return verdict(uint32(answer))
}

func verdict(answer uint32) string {
	switch answer & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return "allow"
	case unix.SECCOMP_RET_LOG:
		return "log"
	case unix.SECCOMP_RET_TRAP:
		return "trap"
	case unix.SECCOMP_RET_KILL_THREAD, unix.SECCOMP_RET_KILL_PROCESS:
		return "kill"
	case unix.SECCOMP_RET_ERRNO:
		return unix.ErrnoName(unix.Errno(answer & unix.SECCOMP_RET_DATA))
	}
	return fmt.Sprintf("%#x", answer)
}

// nameOf returns the name of a native call, empty if there is none.
func nameOf(number uint32) string { return names()[int32(number)] }
