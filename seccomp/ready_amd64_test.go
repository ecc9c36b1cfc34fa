package seccomp

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// Every form of a built-in profile has a program that is ready, and it is what libseccomp makes
// today. There are no others.
func TestReadyProgramsAreWhatIsCompiled(t *testing.T) {
	want := map[string][]byte{}
	for _, name := range filtered {
		for _, w := range []Without{{}, {SetID: true}, {MemoryFiles: true}, {SetID: true, MemoryFiles: true}} {
			profile, err := ProfileWithout(name, w)
			if err != nil {
				t.Fatal(err)
			}
			instructions, err := compileProfile(profile)
			if err != nil {
				t.Fatal(err)
			}
			program, err := assemble(instructions)
			if err != nil {
				t.Fatal(err)
			}
			file, err := readyName(profile)
			if err != nil {
				t.Fatal(err)
			}
			want[file] = program
		}
	}
	if *update {
		writeReady(t, want)
		return // what is embedded is still the old one
	}
	const hint = "run this test with -update, and the goldens' tests, too"
	entries, err := ready.ReadDir("ready")
	if err != nil || len(entries) != len(want) {
		t.Errorf("%d programs are ready, want %d: %s (%v)", len(entries), len(want), hint, err)
	}
	for file, program := range want {
		if got, err := ready.ReadFile(file); err != nil || !bytes.Equal(got, program) {
			t.Errorf("%s is not what libseccomp makes: %s (%v)", file, hint, err)
		}
	}
}

func writeReady(t *testing.T, programs map[string][]byte) {
	t.Helper()
	old, err := filepath.Glob("ready/*.bpf")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	for file, program := range programs {
		if err := os.WriteFile(path.Clean(file), program, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A profile that differs in anything has no program that is ready, and is compiled.
func TestAChangedProfileIsCompiled(t *testing.T) {
	changed := mustProfile(t, Standard)
	rule := slices.IndexFunc(changed.Syscalls[0].Names, func(name string) bool { return name == "getppid" })
	if rule < 0 {
		t.Fatal("standard does not list getppid")
	}
	changed.Syscalls[0].Names = slices.Delete(changed.Syscalls[0].Names, rule, rule+1)
	f, err := Compile(changed, gate)
	if err != nil {
		t.Fatal(err)
	}
	number, _ := numberOf("getppid")
	if own, all := f.Answer(number, nativeAuditArch[runtime.GOARCH], [6]uint64{}), mustCompile(t, Standard).Answer(number, nativeAuditArch[runtime.GOARCH], [6]uint64{}); own.Allowed() || !all.Allowed() {
		t.Errorf("getppid: %v, and as it was: %v", own, all)
	}
}
