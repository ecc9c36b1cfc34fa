package seccomp

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// gate is no option of prctl(2).
const gate = 0x2c10_4e00

func mustCompile(t testing.TB, name string, watched ...Watch) *Filter {
	t.Helper()
	f, err := Compile(mustProfile(t, name), gate, watched...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// machine interprets a program as the kernel gets it.
func machine(t testing.TB, program []byte) *bpf.VM {
	t.Helper()
	raw := make([]bpf.RawInstruction, len(program)/8)
	for i, f := range unsafe.Slice((*unix.SockFilter)(unsafe.Pointer(&program[0])), len(raw)) {
		raw[i] = bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	instructions, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the program cannot be read back")
	}
	vm, err := bpf.NewVM(instructions)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// Whatever the call is: both programs refuse, allow and kill alike, the reporting one says
// notify where the other has an errno other than ENOSYS, and Answer is the plain one's.
func TestBothProgramsDecideAlike(t *testing.T) {
	t.Parallel()
	native := nativeAuditArch[runtime.GOARCH]
	for _, name := range filtered {
		f := mustCompile(t, name)
		plain, reporting := machine(t, f.Plain), machine(t, f.Reporting)
		simulated := compileBuiltin(t, name)
		rapid.Check(t, func(t *rapid.T) {
			number := rapid.OneOf(rapid.Uint32Range(0, 500), rapid.Uint32(), rapid.Just(uint32(unix.SYS_PRCTL))).Draw(t, "number")
			arch := rapid.SampledFrom([]uint32{native, native, native, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_AARCH64}).Draw(t, "arch")
			var args [6]uint64
			for i := range args {
				args[i] = rapid.OneOf(rapid.Uint64Range(0, 64), rapid.Uint64(), rapid.Just(uint64(gate))).Draw(t, "argument")
			}
			data := seccompData(number, arch, args)
			a, _ := plain.Run(data)
			b, _ := reporting.Run(data)
			if own := simulated.run(t, call{arch: arch, number: number, args: args}); own != verdict(uint32(a)) {
				t.Fatalf("plain %s, simulated %s", verdict(uint32(a)), own)
			}
			d := f.Answer(int32(number), arch, args)
			if got := d.String(); got != verdict(uint32(a)) {
				t.Fatalf("answer %s, plain %s", got, verdict(uint32(a)))
			}
			notified := uint32(b) == unix.SECCOMP_RET_USER_NOTIF
			wanted := d.Action == specs.ActErrno && d.Errno != unix.ENOSYS || number == unix.SYS_PRCTL && uint32(args[0]) == gate && arch == native
			if notified != wanted || !notified && a != b {
				t.Fatalf("plain %#x, reporting %#x", a, b)
			}
		})
	}
}

// A watched call is reported if the profile allows it and its argument has one of the bits;
// nothing else changes.
func TestWatchedCalls(t *testing.T) {
	t.Parallel()
	write := uint32(unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT)
	f := mustCompile(t, Standard, Watch{Call: "openat", Argument: 2, Bits: write}, Watch{Call: "mkdir"}, Watch{Call: "mount"}, Watch{Call: "nosuchcall"})
	reporting := machine(t, f.Reporting)
	native := nativeAuditArch[runtime.GOARCH]
	for _, row := range []struct {
		call    string
		args    [6]uint64
		report  bool
		allowed bool
	}{
		{"openat", [6]uint64{0, 0, unix.O_RDONLY | unix.O_CLOEXEC}, false, true},
		{"openat", [6]uint64{0, 0, unix.O_WRONLY}, true, true},
		{"openat", [6]uint64{0, 0, unix.O_CREAT | 1<<40}, true, true},
		{"openat", [6]uint64{0, uint64(write), uint64(write) << 32}, false, true},
		{"mkdir", [6]uint64{}, true, true},
		{"read", [6]uint64{}, false, true},
		{"mount", [6]uint64{}, true, false},
		{"clone3", [6]uint64{}, false, false},
	} {
		number, _ := numberOf(row.call)
		value, err := reporting.Run(seccompData(uint32(number), native, row.args))
		if err != nil || (uint32(value) == unix.SECCOMP_RET_USER_NOTIF) != row.report {
			t.Errorf("%s%#x: %#x, %v", row.call, row.args, value, err)
		}
		if f.Answer(number, native, row.args).Allowed() != row.allowed {
			t.Errorf("%s: the profile's answer changed", row.call)
		}
	}
	// Numbers of other machines are not watched: there they are other calls.
	mkdir, _ := numberOf("mkdir")
	everything, err := Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow}, gate, Watch{Call: "mkdir"})
	if err != nil {
		t.Fatal(err)
	}
	if value, _ := machine(t, everything.Reporting).Run(seccompData(uint32(mkdir), unix.AUDIT_ARCH_AARCH64, [6]uint64{})); uint32(value) == unix.SECCOMP_RET_USER_NOTIF {
		t.Error("a foreign call is watched")
	}
	for _, wrong := range [][]Watch{{{Call: "read"}, {Call: "read"}}, {{Call: "read", Argument: 6, Bits: 1}}} {
		if _, err := Compile(mustProfile(t, Standard), gate, wrong...); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

func TestNothingCanBeExecutedWithoutExecve(t *testing.T) {
	t.Parallel()
	nothing := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
	if _, err := Compile(nothing, gate); err == nil || !strings.Contains(err.Error(), "execve") {
		t.Errorf("a profile that refuses everything: %v", err)
	}
}

// The plain program is the one that is simulated. libseccomp and Go name this machine alike.
func TestProgramIsWhatIsSimulated(t *testing.T) {
	t.Parallel()
	if f := compileBuiltin(t, Minimal); len(mustCompile(t, Minimal).Plain) != 8*len(f.instructions) {
		t.Errorf("%d instructions are simulated", len(f.instructions))
	}
	if native, err := libseccomp.GetNativeArch(); err != nil || nativeAuditArch[native.String()] == 0 {
		t.Errorf("libseccomp and Go name this machine otherwise: %v, %v", native, err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if number, _ := numberOf("openat"); NameOf(number) != "openat" || NameOf(gate) != fmt.Sprintf("call %d", gate) {
		t.Error(NameOf(number), NameOf(gate))
	}
}
