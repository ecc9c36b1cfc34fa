package convert

import (
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func TestAProcessKeepsAllThatItIsGiven(t *testing.T) {
	t.Parallel()
	got, err := Process(&specs.Process{
		Args: []string{"a", "b"}, Env: []string{"A=1"}, Cwd: "/x", NoNewPrivileges: true, ApparmorProfile: "p", SelinuxLabel: "l",
		User:         specs.User{UID: 1, GID: 2, AdditionalGids: []uint32{3, 4}},
		ConsoleSize:  &specs.Box{Width: 80, Height: 25},
		Capabilities: &specs.LinuxCapabilities{Bounding: []string{"CAP_KILL"}, Ambient: []string{"CAP_CHOWN"}},
		Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 5, Hard: 6}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, same := range map[string]bool{
		"command":      strings.Join(got.Args, " ") == "a b" && got.Env[0] == "A=1" && got.Cwd == "/x",
		"user":         got.UID == 1 && got.GID == 2 && len(got.AdditionalGroups) == 2 && got.AdditionalGroups[1] == 4,
		"labels":       got.AppArmorProfile == "p" && got.Label == "l" && *got.NoNewPrivileges,
		"terminal":     got.ConsoleWidth == 80 && got.ConsoleHeight == 25,
		"capabilities": got.Capabilities.Bounding[0] == "CAP_KILL" && got.Capabilities.Ambient[0] == "CAP_CHOWN",
		"rlimits":      len(got.Rlimits) == 1 && got.Rlimits[0].Type == unix.RLIMIT_NOFILE && got.Rlimits[0].Soft == 5 && got.Rlimits[0].Hard == 6,
	} {
		if !same {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if _, err := resourceLimits([]specs.POSIXRlimit{{Type: "RLIMIT_NOFILES"}}); err == nil || err.Error() != "wrong rlimit value: RLIMIT_NOFILES" {
		t.Error(err)
	}
}
