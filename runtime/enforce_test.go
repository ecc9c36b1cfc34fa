package runtime

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/oci/convert"
	"clove.run/clove/policies"
)

// fakeHost enforces everything but what is in missing.
type fakeHost struct {
	missing map[string]string
	hard    uint64
	raise   bool
}

func (f fakeHost) mechanism(name string) (how, why, remedy string) {
	if why, gone := f.missing[name]; gone {
		return "", why, "mount it"
	}
	return "kernel", "", ""
}

func (f fakeHost) hardLimit(string) (uint64, bool) { return f.hard, f.raise }

func TestEverythingAskedForIsEnforced(t *testing.T) {
	t.Parallel()
	spec := policies.Standard()
	spec.Limits.CPUs = 0.5
	e, err := enforce(spec, fakeHost{hard: 20000})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memory", "memory-swap", "pids", "cpu", "disk", "shm", "network", "namespaces", "devices"} {
		if e.enforced[name] != "kernel" {
			t.Errorf("%s is held by %q", name, e.enforced[name])
		}
	}
	if e.enforced["seccomp"] != "standard" || e.enforced["rlimits"] != "setrlimit" {
		t.Errorf("enforced: %v", e.enforced)
	}
	for _, name := range []string{"cpuset", "cpu-time", "wall-clock", "output"} {
		if how, there := e.enforced[name]; there {
			t.Errorf("%s was not asked for, but is reported as %q", name, how)
		}
	}
	if len(e.unenforced) != 0 {
		t.Errorf("unenforced: %v", e.unenforced)
	}
}

func TestAMissingControlRefusesTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range controls {
		t.Run(c.name, func(t *testing.T) {
			spec := askingForEverything()
			h := fakeHost{missing: map[string]string{c.name: "not mounted"}, hard: 20000}
			_, err := enforce(spec, h)
			if agent.KindOf(err) != agent.KindUnenforceable {
				t.Fatalf("got %v, want a refusal", err)
			}
			if !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), "not mounted") {
				t.Errorf("%q names neither the control nor the reason", err)
			}
			spec.AllowUnenforced = []string{c.name}
			e, err := enforce(spec, h)
			if !slices.Contains(weakenable, c.name) {
				if agent.KindOf(err) != agent.KindInvalid {
					t.Errorf("weakening gave %v, want a refusal of the value", err)
				}
				return
			}
			if err != nil || !slices.Equal(e.unenforced, []string{c.name}) {
				t.Errorf("weakened: %v, %v", e.unenforced, err)
			}
		})
	}
}

func askingForEverything() agent.Spec {
	spec := policies.Standard()
	spec.Limits.CPUs, spec.Limits.CPUSet = 1, "0"
	spec.Limits.CPUTime, spec.Limits.WallClock, spec.Limits.OutputBytes = 1, 1, 1
	spec.ClockStart = agent.ClockStartFloor
	spec.Network = agent.NetworkPublic
	spec.Files.ReadOnly, spec.Files.Execute = true, []string{"/usr/bin/true"}
	spec.Files.Landlock, spec.Files.Read = agent.LandlockRequired, []string{"/usr"}
	return spec
}

func TestHardLimitsAreNotRaisedSilently(t *testing.T) {
	t.Parallel()
	spec := policies.Standard()
	spec.Limits.Rlimits = []agent.Rlimit{{Name: "nofile", Soft: 100, Hard: 30000}}
	_, err := enforce(spec, fakeHost{hard: 20000})
	if agent.KindOf(err) != agent.KindUnenforceable {
		t.Fatalf("got %v", err)
	}
	var known *agent.Error
	if !errors.As(err, &known) || !strings.Contains(known.Hint, "nofile=20000") {
		t.Errorf("hint %q does not say what would work", known.Hint)
	}
	if _, err := enforce(spec, fakeHost{hard: 20000, raise: true}); err != nil {
		t.Errorf("with CAP_SYS_RESOURCE: %v", err)
	}
}

func TestWeakenedLimitsAreWhatCanBeHad(t *testing.T) {
	t.Parallel()
	asked := []agent.Rlimit{{Name: "nofile", Soft: 100, Hard: 30000}, {Name: "nproc", Soft: agent.RlimitInfinity, Hard: agent.RlimitInfinity}, {Name: "core"}}
	got := attainable(asked, fakeHost{hard: 20000})
	want := []agent.Rlimit{{Name: "nofile", Soft: 100, Hard: 20000}, {Name: "nproc", Soft: 20000, Hard: 20000}, {Name: "core"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := attainable(asked, fakeHost{hard: 20000, raise: true}); !slices.Equal(got, asked) {
		t.Errorf("lowered %v although all can be had", got)
	}
	if len(raised(want, fakeHost{hard: 20000})) != 0 || len(raised(asked, fakeHost{hard: 20000})) != 2 {
		t.Error("what is raised from outside is not what is above this process's own limit")
	}
}

func TestLibcontainerIsToldWhatToRaise(t *testing.T) {
	t.Parallel()
	process, err := convert.Process(&specs.Process{Rlimits: ociRlimits([]agent.Rlimit{{Name: "nofile", Soft: 5, Hard: 30000}, {Name: "nproc", Hard: 40000}})})
	if err != nil {
		t.Fatal(err)
	}
	want := []configs.Rlimit{{Type: unix.RLIMIT_NOFILE, Soft: 30000, Hard: 30000}, {Type: unix.RLIMIT_NPROC, Soft: 40000, Hard: 40000}}
	if got := process.Rlimits; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSocketsGoWithMemoryAndTheNetwork: the limit of sockets is a share of the memory limit,
// and needs a network namespace.
func TestSocketsGoWithMemoryAndTheNetwork(t *testing.T) {
	t.Parallel()
	spec := policies.Standard()
	spec.AllowUnenforced = []string{agent.ControlMemory}
	h := fakeHost{missing: map[string]string{agent.ControlMemory: "not mounted", agent.ControlSockets: "not mounted"}, hard: 20000}
	e, err := enforce(spec, h)
	if err != nil || !slices.Equal(e.unenforced, []string{agent.ControlMemory, agent.ControlSockets}) {
		t.Errorf("without memory: %v, %v", e.unenforced, err)
	}
	spec = policies.Standard()
	spec.Network = agent.NetworkHost
	e, err = enforce(spec, fakeHost{hard: 20000})
	if err != nil || !slices.Equal(e.unenforced, []string{agent.ControlNetwork, agent.ControlSockets}) {
		t.Errorf("in the host's network: %v, %v", e.unenforced, err)
	}
}

func TestUnconfinedIsRecorded(t *testing.T) {
	t.Parallel()
	spec := policies.Standard()
	spec.Seccomp.Profile = agent.SeccompUnconfined
	e, err := enforce(spec, fakeHost{hard: 20000})
	if err != nil || !e.lacks(agent.ControlSeccomp) {
		t.Errorf("unenforced %v, %v", e.unenforced, err)
	}
	if _, there := e.enforced[agent.ControlSeccomp]; there {
		t.Error("an absent filter is reported as enforced")
	}
}
