package seccomp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// nativeAuditArch is the value of seccomp_data.arch for a native call.
var nativeAuditArch = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64,
}

// actionOf is what runc translates each action to.
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

// compileProfile does what runc's InitSeccomp does, without loading.
func compileProfile(p *specs.LinuxSeccomp) ([]bpf.Instruction, error) {
	scmp, err := addRules(p)
	if err != nil {
		return nil, err
	}
	defer scmp.Release()
	program, err := export(scmp)
	if err != nil {
		return nil, err
	}
	stub, err := enosysStub(p)
	if err != nil {
		return nil, err
	}
	return append(stub, program...), nil
}

func scmpAction(action specs.LinuxSeccompAction, errno *uint) libseccomp.ScmpAction {
	scmp := actionOf[action]
	if action == specs.ActErrno {
		scmp = scmp.SetReturnCode(int16(decisionOf(action, errno).Errno))
	}
	return scmp
}

func addRules(p *specs.LinuxSeccomp) (*libseccomp.ScmpFilter, error) {
	standing := scmpAction(p.DefaultAction, p.DefaultErrnoRet)
	scmp, err := libseccomp.NewFilter(standing)
	if err != nil {
		return nil, err
	}
	if err := scmp.SetOptimize(2); err != nil { // a binary tree, as runc asks for
		scmp.Release()
		return nil, err
	}
	if err := addABIs(scmp, p); err != nil {
		scmp.Release()
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
				scmp.Release()
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return scmp, nil
}

// abis are the other ABIs of this machine's kernel, as libseccomp names them.
var abis = map[specs.Arch]libseccomp.ScmpArch{
	specs.ArchX86: libseccomp.ArchX86, specs.ArchX32: libseccomp.ArchX32, specs.ArchARM: libseccomp.ArchARM,
}

// addABIs lets programs of the other ABIs run under a profile that allows what it does not name, and
// holds its rules against them. Under any other profile their first call kills them.
func addABIs(scmp *libseccomp.ScmpFilter, p *specs.LinuxSeccomp) error {
	if !permissive(p.DefaultAction) {
		return nil
	}
	for _, arch := range p.Architectures {
		if abi, other := abis[arch]; other {
			if err := scmp.AddArch(abi); err != nil {
				return err
			}
		}
	}
	return nil
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

// export reads the program back through a pipe, because libseccomp writes to descriptors only.
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
	if err := errors.Join(err, <-failed); err != nil {
		return nil, err
	}
	return disassemble(raw)
}

// enosysStub is the answer of runc's patchbpf to numbers above all that the profile names, for
// one architecture.
func enosysStub(p *specs.LinuxSeccomp) ([]bpf.Instruction, error) {
	if !answersENOSYS(p) {
		return nil, nil
	}
	arch, ok := nativeAuditArch[runtime.GOARCH]
	if !ok {
		return nil, errors.New("no filter is compiled for " + runtime.GOARCH)
	}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: arch, SkipTrue: 4},
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: x32Bit, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: uint32(largest(p)), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(unix.SECCOMP_RET_ERRNO | unix.ENOSYS)},
	}, nil
}

// x32Bit marks a call of the x32 table, __X32_SYSCALL_BIT.
const x32Bit = 1 << 30
