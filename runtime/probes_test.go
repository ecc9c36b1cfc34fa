package runtime

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
)

// TestEveryControlStandsOnAProbe: a control without a probe would be refused always, and
// without a reason.
func TestEveryControlStandsOnAProbe(t *testing.T) {
	t.Parallel()
	for _, c := range controls {
		if !slices.ContainsFunc(probeTable, func(p probe) bool { return slices.Contains(p.controls, c.name) }) {
			t.Errorf("no probe looks for %s", c.name)
		}
	}
	for _, p := range probeTable {
		for _, name := range p.controls {
			if !slices.ContainsFunc(controls, func(c controlled) bool { return c.name == name }) {
				t.Errorf("%s is looked for by %s and is no control", name, p.name)
			}
		}
		if p.enforces == "" || p.name == "" || p.find == nil {
			t.Errorf("%q says too little", p.name)
		}
	}
}

// TestEveryProbeAnswers: each probe says yes or no on this host, and so does doctor.
func TestEveryProbeAnswers(t *testing.T) {
	t.Parallel()
	h := gatherProbes("", "/run/clove")
	for _, p := range probeTable {
		if found, missing := p.find(h); (found == "") == (missing == "") {
			t.Errorf("%s: found %q, missing %q", p.name, found, missing)
		}
	}
	for _, finding := range Doctor("/run/clove") {
		if (finding.Status == FindingOK) != (finding.Missing == "") || (finding.Status == FindingMissing) != (finding.Found == "") {
			t.Errorf("%+v", finding)
		}
		if finding.Status == FindingOK && finding.Remedy != "" {
			t.Errorf("%s is there and has the remedy %q", finding.Name, finding.Remedy)
		}
	}
}

// TestAHostWithoutCgroups: doctor names each limit that is missing and why.
func TestAHostWithoutCgroups(t *testing.T) {
	t.Parallel()
	h := &probes{cgroupsErr: errors.New("nothing is mounted")}
	for _, name := range []string{agent.ControlMemory, agent.ControlMemorySwap, agent.ControlPids, agent.ControlCPU,
		agent.ControlCPUSet, agent.ControlCPUTime, agent.ControlDevices} {
		how, why, remedy := h.mechanism(name)
		if how != "" || !strings.Contains(why, "nothing is mounted") || remedy == "" {
			t.Errorf("%s: held by %q, missing %q, remedy %q", name, how, why, remedy)
		}
	}
	if how, why, _ := h.mechanism(agent.ControlWallClock); how != "clove-init" {
		t.Errorf("the wall clock needs no cgroup: %q, %q", how, why)
	}
}

func TestProbesOfWhatIsNotThere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, find := range map[string]func(*probes) (string, string){
		"a file system": fileSystemProbe("nosuchfs"), "a namespace": namespaceProbe("nosuch"), "clove-init": findInitBinary,
	} {
		if found, missing := find(&probes{}); found != "" || missing == "" {
			t.Errorf("%s: found %q, missing %q", name, found, missing)
		}
	}
}

// TestMke2fsNeedsNoPATH: the PATH of a user or a service may lack /sbin.
func TestMke2fsNeedsNoPATH(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	found, missing := findMkfs(&probes{})
	if there := exists("/sbin/mke2fs"); there != (found == "/sbin/mke2fs") || there != (missing == "") {
		t.Errorf("/sbin/mke2fs exists: %t; found %q, missing %q", there, found, missing)
	}
}

func TestHardLimits(t *testing.T) {
	t.Parallel()
	h := &probes{}
	own, _ := h.hardLimit("nofile")
	if own == 0 {
		t.Fatal("this process may open no file at all")
	}
	if limit, raisable := h.hardLimit("nosuch"); limit != 0 || raisable {
		t.Errorf("an unknown one: %d, %v", limit, raisable)
	}
	asked := []agent.Rlimit{{Name: "nofile", Soft: 10, Hard: 20}, {Name: "core", Soft: 30, Hard: 40}}
	if above := raised(asked, fakeHost{hard: 30}); len(above) != 1 || above[0].Name != "core" {
		t.Errorf("above 30: %v", above)
	}
	if above := raised(asked, fakeHost{hard: math.MaxUint64}); above != nil {
		t.Errorf("above all: %v", above)
	}
}

func TestMechanismWordsAreOfControls(t *testing.T) {
	t.Parallel()
	for name := range mechanismNames {
		if !slices.ContainsFunc(controls, func(c controlled) bool { return c.name == name }) {
			t.Errorf("%s is no control", name)
		}
	}
}

func TestProcessStatus(t *testing.T) {
	t.Parallel()
	status, err := pidfd.Status(os.Getpid())
	if err != nil || status["NoNewPrivs"] == "" || status["Seccomp"] == "" {
		t.Errorf("%v, %v", status, err)
	}
	if _, err := pidfd.Status(-1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no process: %v", err)
	}
}

func TestAReasonMayBringItsOwnRemedy(t *testing.T) {
	t.Parallel()
	for missing, want := range map[string][2]string{
		"not there":             {"not there", "the table's"},
		"read-only; remount it": {"read-only", "remount it"},
		"":                      {"", "the table's"},
	} {
		p := probe{remedy: "the table's", find: func(*probes) (string, string) { return "", missing }}
		if _, why, remedy := p.ask(nil); why != want[0] || remedy != want[1] {
			t.Errorf("%q: %q, %q", missing, why, remedy)
		}
	}
}
