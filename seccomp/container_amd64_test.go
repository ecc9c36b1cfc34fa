package seccomp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	profiles "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/doctest"
)

// containerCalls are the calls that building a sandbox needs beyond those that Docker's
// profile allows a container with CAP_SYS_ADMIN. The tests of the Docker image show that each
// is needed: each is left out there in turn.
var containerCalls = []string{"keyctl", "pivot_root"}

// TestProfileOfTheDockerImage: deploy/docker/seccomp.json is Docker's own profile, in the
// pinned version of its library, with those calls and nothing else.
func TestProfileOfTheDockerImage(t *testing.T) {
	t.Parallel()
	profile := profiles.DefaultProfile()
	profile.Syscalls = append(profile.Syscalls, &profiles.Syscall{
		LinuxSyscall: specs.LinuxSyscall{Names: containerCalls, Action: specs.ActAllow},
		Comment:      "clove: for agents' sandboxes",
		Includes:     &profiles.Filter{Caps: []string{"CAP_SYS_ADMIN"}},
	})
	want, err := json.MarshalIndent(profile, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	path := filepath.Join(doctest.Root(t), "deploy/docker/seccomp.json")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("deploy/docker/seccomp.json is not what this test makes: run it with -update, and read the difference")
	}
}
