package seccomp

import (
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Standard allows files in memory; without them it refuses those and nothing else.
func TestWithoutMemoryFiles(t *testing.T) {
	for _, name := range []string{Standard, Strict, Minimal} {
		base, err := Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		narrower, err := ProfileWithout(name, Without{MemoryFiles: true})
		if err != nil {
			t.Fatal(err)
		}
		if d := Decide(narrower, memoryFile, [6]uint64{}); d.Allowed() || d.Errno != unix.ENOSYS {
			t.Errorf("%s: %s", name, d)
		}
		if got := EscapesMounts(narrower); len(got) > 0 {
			t.Errorf("%s has %q", name, got)
		}
		for _, call := range calls() {
			if call != memoryFile && verdictOf(base, call) != verdictOf(narrower, call) {
				t.Errorf("%s: %s changes from %s to %s", name, call, verdictOf(base, call), verdictOf(narrower, call))
			}
		}
	}
	standard, err := Profile(Standard)
	if err != nil {
		t.Fatal(err)
	}
	if got := EscapesMounts(standard); !slices.Equal(got, []string{memoryFile}) { // the control
		t.Errorf("standard has %q", got)
	}
	if d := Decide(standard, memoryFile, [6]uint64{}); !d.Allowed() {
		t.Error("standard refuses files in memory by itself")
	}
	if p, err := ProfileWithout(Unconfined, Without{MemoryFiles: true}); len(p.Syscalls) != 2 || err != nil {
		t.Errorf("unconfined: %v, %v", p, err)
	}
}

// With both, each is as it is alone.
func TestWithoutBoth(t *testing.T) {
	both, err := ProfileWithout(Standard, Without{SetID: true, MemoryFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	if Decide(both, memoryFile, [6]uint64{}).Allowed() || Decide(both, "fchmod", [6]uint64{0, unix.S_ISUID}).Allowed() || !Decide(both, "fchmod", [6]uint64{0, 0o755}).Allowed() {
		t.Error("one of them is lost")
	}
}

func TestEscapesMounts(t *testing.T) {
	rule := func(action specs.LinuxSeccompAction, call string, args ...specs.LinuxSeccompArg) specs.LinuxSyscall {
		return specs.LinuxSyscall{Names: []string{call}, Action: action, Args: args}
	}
	masked := specs.LinuxSeccompArg{Index: 0, Op: specs.OpMaskedEqual, Value: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
	other := specs.LinuxSeccompArg{Index: 0, Op: specs.OpMaskedEqual, Value: unix.CLONE_NEWNS}
	second := specs.LinuxSeccompArg{Index: 1, Op: specs.OpMaskedEqual, Value: unix.CLONE_NEWUSER}
	set := specs.LinuxSeccompArg{Index: 0, Op: specs.OpMaskedEqual, Value: unix.CLONE_NEWUSER, ValueTwo: unix.CLONE_NEWUSER}
	allow, refuse := specs.ActAllow, specs.ActErrno
	execve := rule(allow, "execve")
	for name, row := range map[string]struct {
		profile specs.LinuxSeccomp
		want    []string
	}{
		"nothing":             {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{execve}}, nil},
		"a default of allow":  {specs.LinuxSeccomp{DefaultAction: allow}, []string{memoryFile, "clone3", "clone", "unshare"}},
		"clone, masked":       {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{rule(allow, "clone", masked)}}, nil},
		"clone, another bit":  {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{rule(allow, "clone", other)}}, []string{"clone"}},
		"clone, another word": {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{rule(allow, "clone", second)}}, []string{"clone"}},
		"clone, the bit set":  {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{rule(allow, "clone", set)}}, []string{"clone"}},
		"clone, one of two":   {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{rule(allow, "clone", masked), rule(allow, "clone", other)}}, []string{"clone"}},
		"unshare":             {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{rule(allow, "unshare")}}, []string{"unshare"}},
		"memfd with a flag":   {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{rule(allow, memoryFile, second)}}, []string{memoryFile}},
		"logged":              {specs.LinuxSeccomp{DefaultAction: refuse, Syscalls: []specs.LinuxSyscall{rule(specs.ActLog, "clone")}}, []string{"clone"}},
	} {
		if got := EscapesMounts(&row.profile); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := EscapesMounts(nil); len(got) != 4 {
		t.Errorf("unconfined: %q", got)
	}
}
