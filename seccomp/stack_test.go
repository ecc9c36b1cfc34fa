package seccomp

import (
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
)

// A profile that is loaded for clove-init lets it work; minimal lies on top of one that does.
func TestStacks(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		profile := mustProfile(t, name)
		s, err := StackOf(name, profile)
		if err != nil {
			t.Fatal(err)
		}
		if (s.Agent != nil) != (name == Minimal) || (s.Sandbox == nil) != (name == Unconfined) {
			t.Errorf("%s: %v, %v", name, s.Sandbox != nil, s.Agent != nil)
		}
		if s.Sandbox != nil && !servesInit(s.Sandbox) {
			t.Errorf("%s: clove-init cannot work", name)
		}
	}
}

// What lies below minimal is strict and prctl's option; what holds in the end is minimal.
func TestMinimalLiesOnStrict(t *testing.T) {
	t.Parallel()
	s, err := StackOf(Minimal, mustProfile(t, Minimal))
	if err != nil {
		t.Fatal(err)
	}
	load := [6]uint64{22, 2} // PR_SET_SECCOMP, SECCOMP_MODE_FILTER
	if !Decide(s.Sandbox, "prctl", load).Allowed() || Decide(s.Agent, "prctl", load).Allowed() || Decide(s.Agent, "seccomp", [6]uint64{}).Allowed() {
		t.Error("clove-init must be able to load a filter, and the agent must not")
	}
	if Decide(s.Sandbox, "seccomp", [6]uint64{}).Allowed() {
		t.Error("seccomp(2) passes")
	}
	if c := Compare(s.Sandbox, mustProfile(t, Strict)); len(c.OnlyA)+len(c.OnlyB) != 0 || len(c.Other) != 1 || c.Other[0].Call != "prctl" {
		t.Errorf("beside prctl: %+v", c)
	}
	if c := Compare(s.Agent, s.Sandbox); len(c.OnlyA) != 0 {
		t.Errorf("minimal allows what is refused below it: %+v", c.OnlyA)
	}
}

// A document under which clove-init cannot work is the agent's only.
func TestDocumentsAreStackedWhereTheyMust(t *testing.T) {
	t.Parallel()
	docker, err := Docker()
	if err != nil {
		t.Fatal(err)
	}
	everything := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow}
	for _, row := range []struct {
		profile *specs.LinuxSeccomp
		stacked bool
	}{{docker, false}, {everything, false}, {mustProfile(t, Minimal), true}} {
		s, err := StackOf("/a/file", row.profile)
		if err != nil || (s.Agent != nil) != row.stacked || row.stacked && !servesInit(s.Sandbox) {
			t.Errorf("stacked: %t, want %t (%v)", s.Agent != nil, row.stacked, err)
		}
	}
}

// The program is the same as the one that is simulated, and has as many instructions.
func TestProgramIsWhatIsSimulated(t *testing.T) {
	t.Parallel()
	program, err := Program(mustProfile(t, Minimal))
	if err != nil {
		t.Fatal(err)
	}
	if f := compileBuiltin(t, Minimal); len(program) != 8*len(f.instructions) {
		t.Errorf("%d bytes for %d instructions", len(program), len(f.instructions))
	}
	if native, err := libseccomp.GetNativeArch(); err != nil || nativeAuditArch[native.String()] == 0 {
		t.Errorf("libseccomp and Go name this machine otherwise: %v, %v", native, err)
	}
}

func TestNothingCanBeExecutedWithoutExecve(t *testing.T) {
	t.Parallel()
	nothing := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
	if _, err := StackOf("/a/file", nothing); err == nil || !strings.Contains(err.Error(), "execve") {
		t.Errorf("a profile that refuses everything: %v", err)
	}
}
