package seccomp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
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

// nativeAuditArch is the value of seccomp_data.arch for a native call.
var nativeAuditArch = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64,
}

var actionOf = map[specs.LinuxSeccompAction]libseccomp.ScmpAction{
	specs.ActAllow: libseccomp.ActAllow, specs.ActErrno: libseccomp.ActErrno,
	specs.ActLog: libseccomp.ActLog, specs.ActTrap: libseccomp.ActTrap,
	specs.ActKill: libseccomp.ActKillThread, specs.ActKillThread: libseccomp.ActKillThread,
	specs.ActKillProcess: libseccomp.ActKillProcess,
}

var operatorOf = map[specs.LinuxSeccompOperator]libseccomp.ScmpCompareOp{
	specs.OpEqualTo: libseccomp.CompareEqual, specs.OpNotEqual: libseccomp.CompareNotEqual,
	specs.OpLessThan: libseccomp.CompareLess, specs.OpLessEqual: libseccomp.CompareLessOrEqual,
	specs.OpGreaterThan: libseccomp.CompareGreater, specs.OpGreaterEqual: libseccomp.CompareGreaterEqual,
	specs.OpMaskedEqual: libseccomp.CompareMaskedEqual,
}

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

// compile does what runc's InitSeccomp does, without loading.
func compile(p *specs.LinuxSeccomp) (filter, error) {
	scmp, err := addRules(p)
	if err != nil {
		return filter{}, err
	}
	defer scmp.Release()
	program, err := export(scmp)
	if err != nil {
		return filter{}, err
	}
	stub, err := enosysStub(p)
	if err != nil {
		return filter{}, err
	}
	program = append(stub, program...)
	vm, err := bpf.NewVM(program)
	return filter{program, vm}, err
}

func scmpAction(action specs.LinuxSeccompAction, errno *uint) libseccomp.ScmpAction {
	o := outcomeOf(action, errno)
	scmp := actionOf[action]
	if action == specs.ActErrno {
		scmp = scmp.SetReturnCode(int16(o.errno))
	}
	return scmp
}

func addRules(p *specs.LinuxSeccomp) (*libseccomp.ScmpFilter, error) {
	standing := scmpAction(p.DefaultAction, p.DefaultErrnoRet)
	scmp, err := libseccomp.NewFilter(standing)
	if err != nil {
		return nil, err
	}
	if err := scmp.SetOptimize(2); err != nil {
		return nil, err
	}
	for _, rule := range p.Syscalls {
		action := scmpAction(rule.Action, rule.ErrnoRet)
		for _, name := range rule.Names {
			number, err := libseccomp.GetSyscallFromName(name)
			if err != nil || action == standing {
				continue // runc ignores both silently
			}
			if err := addRule(scmp, number, action, rule.Args); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return scmp, nil
}

func addRule(scmp *libseccomp.ScmpFilter, number libseccomp.ScmpSyscall, action libseccomp.ScmpAction, args []specs.LinuxSeccompArg) error {
	if len(args) == 0 {
		return scmp.AddRule(number, action)
	}
	var conditions []libseccomp.ScmpCondition
	for _, arg := range args {
		condition, err := libseccomp.MakeCondition(arg.Index, operatorOf[arg.Op], arg.Value, arg.ValueTwo)
		if err != nil {
			return err
		}
		conditions = append(conditions, condition)
	}
	return scmp.AddRuleConditional(number, action, conditions)
}

func export(scmp *libseccomp.ScmpFilter) ([]bpf.Instruction, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	failed := make(chan error, 1)
	go func() {
		defer writer.Close()
		failed <- scmp.ExportBPF(writer)
	}()
	raw, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	if err := <-failed; err != nil {
		return nil, err
	}
	sockFilters := make([]unix.SockFilter, len(raw)/8)
	if err := binary.Read(bytes.NewReader(raw), binary.NativeEndian, sockFilters); err != nil {
		return nil, err
	}
	var program []bpf.RawInstruction
	for _, f := range sockFilters {
		program = append(program, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K})
	}
	instructions, ok := bpf.Disassemble(program)
	if !ok {
		return nil, fmt.Errorf("libseccomp exported an instruction that cannot be read back")
	}
	return instructions, nil
}

// enosysStub is the answer of runc's patchbpf to numbers above all that the profile names, for
// one architecture.
func enosysStub(p *specs.LinuxSeccomp) ([]bpf.Instruction, error) {
	native, err := libseccomp.GetNativeArch()
	if err != nil {
		return nil, err
	}
	var largest libseccomp.ScmpSyscall
	for _, rule := range p.Syscalls {
		for _, name := range rule.Names {
			if number, err := libseccomp.GetSyscallFromNameByArch(name, native); err == nil {
				largest = max(largest, number)
			}
		}
	}
	enosys := uint32(unix.SECCOMP_RET_ERRNO | unix.ENOSYS)
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nativeAuditArch[native.String()], SkipTrue: 4},
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: x32Bit, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: uint32(largest), SkipTrue: 1},
		bpf.RetConstant{Val: enosys},
	}, nil
}

// x32Bit marks a call of the x32 table, __X32_SYSCALL_BIT.
const x32Bit = 1 << 30

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

// run returns the filter's answer: "allow", "kill", "log" or an errno.
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

// seccompData lays out struct seccomp_data as a little-endian kernel does,
// but each word big-endian: the interpreter reads packets in network order.
func seccompData(number, arch uint32, args [6]uint64) []byte {
	data := binary.BigEndian.AppendUint32(nil, number)
	data = binary.BigEndian.AppendUint32(data, arch)
	data = binary.BigEndian.AppendUint64(data, 0) // instruction pointer
	for _, arg := range args {
		data = binary.BigEndian.AppendUint32(data, uint32(arg))
		data = binary.BigEndian.AppendUint32(data, uint32(arg>>32))
	}
	return data
}

func verdict(answer uint32) string {
	switch answer & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return "allow"
	case unix.SECCOMP_RET_LOG:
		return "log"
	case unix.SECCOMP_RET_KILL_THREAD, unix.SECCOMP_RET_KILL_PROCESS:
		return "kill"
	case unix.SECCOMP_RET_ERRNO:
		return unix.ErrnoName(unix.Errno(answer & unix.SECCOMP_RET_DATA))
	}
	return fmt.Sprintf("%#x", answer)
}

// nameOf returns the name of a native call, empty if there is none.
func nameOf(number uint32) string {
	name, err := libseccomp.ScmpSyscall(number).GetName()
	if err != nil {
		return ""
	}
	return name
}
