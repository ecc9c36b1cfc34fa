package runtime

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asked returns a run that uses every limit which reaches the OCI config.
func asked(user agent.User) agent.Spec {
	spec := policies.Standard()
	spec.ID, spec.Name = "0123456789abcdef", "golden"
	spec.User = user
	spec.Limits.CPUs, spec.Limits.CPUSet = 0.5, "0-1"
	return spec
}

func around() surroundings {
	return surroundings{
		Root: "/run/clove/0123456789abcdef/mnt/root", HostID: agent.FirstHostID, NetworkPath: "/proc/1/fd/7",
		CgroupsPath: "/clove.slice/0123456789abcdef", CgroupV2: true, SwapLimited: true,
	}
}

func TestCompileGolden(t *testing.T) {
	t.Parallel()
	v1 := around()
	v1.CgroupV2, v1.SwapLimited, v1.CgroupsPath = false, false, "clove/0123456789abcdef"
	v1.ThermalDirs = []string{"/sys/devices/system/cpu/cpu0/thermal_throttle"}
	v1.Raised = []agent.Rlimit{{Name: "nofile", Soft: 1, Hard: 1 << 20}}
	rows := map[string]*specs.Spec{
		"agent-v2": compile(asked(policies.AgentUser), around()),
		"root-v1":  compile(asked(policies.RootUser), v1),
	}
	for name, got := range rows {
		t.Run(name, func(t *testing.T) {
			text, err := json.MarshalIndent(got, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, '\n')
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(text) != string(want) {
				t.Errorf("differs from %s; look at it with: go test ./runtime -run Golden -update && git diff", path)
			}
		})
	}
}

func TestTheAgentGetsNoCapability(t *testing.T) {
	t.Parallel()
	if got := capabilitiesOf(asked(policies.AgentUser)); len(got) != 0 {
		t.Errorf("the agent would have %v", got)
	}
	if got := capabilitiesOf(asked(agent.User{UID: 7})); len(got) != 0 {
		t.Errorf("uid 7 would have %v", got)
	}
	for _, dangerous := range []string{"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SYS_PTRACE", "CAP_MKNOD", "CAP_SYS_CHROOT", "CAP_NET_RAW"} {
		if slices.Contains(capabilitiesOf(asked(policies.RootUser)), dangerous) {
			t.Errorf("root inside would have %s", dangerous)
		}
	}
}

// A writable bind removes FSETID from root inside: with it, root inside could make a
// set-user-ID program that belongs to a user of the host. A read-only bind removes nothing.
func TestWritingHostFilesCostsFSETID(t *testing.T) {
	t.Parallel()
	for readOnly, want := range map[bool]bool{true: true, false: false} {
		spec := asked(policies.RootUser)
		spec.Files.Binds = []agent.Bind{{Source: "/data", Target: "/data", ReadOnly: readOnly}}
		if got := slices.Contains(capabilitiesOf(spec), "CAP_FSETID"); got != want {
			t.Errorf("read-only %v: CAP_FSETID %v", readOnly, got)
		}
	}
}

func TestWhatIsUnenforcedIsLeftOut(t *testing.T) {
	t.Parallel()
	s := around()
	s.Unenforced = []string{agent.ControlMemory, agent.ControlMemorySwap, agent.ControlPids, agent.ControlCPU, agent.ControlCPUSet}
	r := compile(asked(policies.AgentUser), s).Linux.Resources
	if r.Memory.Limit != nil || r.Memory.Swap != nil || r.Pids != nil || r.CPU.Quota != nil || r.CPU.Cpus != "" || r.Unified != nil {
		t.Errorf("still asks for %+v", r)
	}
	// Control: with everything enforced each of them is there.
	r = compile(asked(policies.AgentUser), around()).Linux.Resources
	if r.Memory.Limit == nil || r.Memory.Swap == nil || r.Pids == nil || r.CPU.Quota == nil || r.CPU.Cpus == "" || r.Unified == nil {
		t.Errorf("does not ask for everything: %+v", r)
	}
}

// Without a list everything of /dev is mounted as ever.
func TestWritablePlacesOfDev(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		files  agent.Files
		closed []string
	}{
		"a writable root":    {agent.Files{}, nil},
		"a read-only root":   {agent.Files{ReadOnly: true}, nil},
		"a list without shm": {agent.Files{ReadOnly: true, Writable: []string{"/tmp"}}, []string{"/dev", "/dev/shm", "/dev/mqueue"}},
		"a list with shm":    {agent.Files{ReadOnly: true, Writable: []string{"/dev/shm"}}, []string{"/dev", "/dev/mqueue"}},
	} {
		spec := asked(policies.AgentUser)
		spec.Files = row.files
		var closed []string
		for _, m := range compile(spec, around()).Mounts {
			if strings.HasPrefix(m.Destination, "/dev") && slices.Contains(m.Options, "ro") {
				closed = append(closed, m.Destination)
			}
		}
		if !slices.Equal(closed, row.closed) {
			t.Errorf("%s: read-only are %q, want %q", name, closed, row.closed)
		}
	}
}

func TestSmallShareOfACPU(t *testing.T) {
	t.Parallel()
	spec := asked(policies.AgentUser)
	spec.Limits.CPUs = 0.001
	if quota := *compile(spec, around()).Linux.Resources.CPU.Quota; quota != cpuQuotaMin {
		t.Errorf("quota %d, want the kernel's least %d", quota, cpuQuotaMin)
	}
}
