package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// samples give every flag of run a value that differs from its default. A flag that is missing
// here or changes nothing should not exist.
var samples = map[string]string{
	flagMemory: "64M", flagMemorySwap: "2G", flagCPUs: "1", flagCPUSet: "1", flagPids: "64", flagUlimit: "nofile=10",
	flagCPUTime: "1", flagTimeout: "1", flagStopTimeout: "1", flagStartTimeout: "9", flagOutput: "1M", flagDisk: "64M", flagShm: "1M",
	flagVolume: "./folder:/data", flagTmpfs: "/run", flagReadOnly: "", flagRead: "/usr", flagRootfs: "folder", flagWorkspace: "work", flagPython: "base/bin/python3.11",
	flagEnv: "A=1", flagEnvFile: "vars", flagWorkdir: "/tmp", flagUser: "root", flagName: "mine", flagLabel: "a=b", flagHostname: "box",
	flagNetwork: "public", flagAllow: "example.com", flagDeny: "example.com", flagPublish: "8080:80", flagHostPort: "80",
	flagStopSignal: "INT", flagMount: "type=bind,source=folder,target=/data", flagAddHost: "db.example:10.0.0.5", flagCapDrop: "CHOWN",
	flagNetConnections: "1", flagNetRate: "1", flagNetBytes: "1M",
	flagGrant: "tool:fetch", flagModel: "small", flagBudget: "reviews=10", flagAtEnd: "pause", flagOnWarn: "true", flagOnEnd: "https://a.example/", flagOnDenial: "end", flagNamespace: "acme/research", flagAgentSocket: "",
	flagSeccomp: "strict", flagShadow: "minimal", flagWeaken: agent.ControlCPU, flagTTY: "", flagRemove: "",
	// Flags that a spec does not show: their default is the only choice, or they concern the
	// output and are tested there.
	flagPolicy: "standard", flagInteractive: "", flagResult: "record.json", flagJSON: "", flagDebug: "", flagClipboard: "", flagNetworkLog: "decisions.jsonl",
	flagOption: "no-new-privileges", flagInit: "", flagIDFile: "id", flagLearn: "learned.yaml",
}

var notInTheSpec = []string{flagPolicy, flagInteractive, flagResult, flagJSON, flagDebug, flagClipboard, flagNetworkLog, flagOption, flagInit, flagIDFile}

// testedByThemselves: one flag shows a spec instead of running it, one needs a network, one a
// read-only root, one a command without a script, one a model, the others cloved.
var testedByThemselves = []string{flagExplainNetwork, flagDNS, flagExecute, flagEntry, flagModelSetup, flagDetach, flagRestart, flagAfter, flagPriority, flagDelay, flagSchedule, flagKeep, flagModelLog, flagLearnNetwork, flagLearnReads}

// A log of what calls of models say is kept only where the run asks for it.
func TestModelLog(t *testing.T) {
	for _, log := range []bool{false, true} {
		flags := []string{"--model", "echo"}
		if log {
			flags = append(flags, "--"+flagModelLog)
		}
		if spec := interpreterBench(t).spec(append(flags, "--", "true")...); spec.Kernel.ModelLog != log {
			t.Errorf("%v: %+v", flags, spec.Kernel)
		}
	}
}

// A list of programs is absent without the flag, and not empty.
func TestListOfPrograms(t *testing.T) {
	if spec := interpreterBench(t).spec("--read-only", "--", "true"); spec.Files.Execute != nil {
		t.Errorf("%q", spec.Files.Execute)
	}
	spec := interpreterBench(t).spec("--read-only", "--allow-exec", "/bin/true", "--allow-exec", "/usr/lib/git-core/*", "--", "true")
	if want := []string{"/bin/true", "/usr/lib/git-core/*"}; !slices.Equal(spec.Files.Execute, want) {
		t.Errorf("%q", spec.Files.Execute)
	}
}

func TestEveryFlagDoesSomething(t *testing.T) {
	shown := func(flags ...string) string {
		b := interpreterBench(t)
		b.cloved() // without it, some are refused in the foreground
		b.file("folder/x", "", 0o644)
		b.file("vars", "B=2\n", 0o644)
		b.file("work/agent.py", "", 0o644)
		spec := b.spec(append(flags, "work/agent.py")...)
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer(b.host.Dir, "DIR", string(spec.ID), "ID", string(spec.ID)[:8], "ID8").Replace(string(text))
	}
	plain := shown()
	for _, f := range runFlags() {
		name := f.Names()[0]
		if slices.Contains(testedByThemselves, name) {
			continue
		}
		sample, known := samples[name]
		if !known {
			t.Errorf("--%s has no sample", name)
			continue
		}
		flags := []string{"--" + name}
		if sample != "" {
			flags = append(flags, sample)
		}
		// The script's directory is the workspace by default, so the test names its parent.
		if name == flagWorkspace {
			flags[1] = "."
		}
		if same := shown(flags...) == plain; same != slices.Contains(notInTheSpec, name) {
			t.Errorf("%q: the spec is the same: %v", flags, same)
		}
	}
}

func TestFlagsAreDocumentedAndUnique(t *testing.T) {
	for _, c := range new(program).commands() {
		seen := map[string]bool{flagHelp: true, "h": true}
		for _, f := range slices.Concat(c.Flags, globalFlags()) {
			if usage := f.(cli.DocGenerationFlag).GetUsage(); usage == "" || strings.HasSuffix(usage, ".") {
				t.Errorf("%s --%s: usage %q", c.Name, f.Names()[0], usage)
			}
			for _, name := range f.Names() {
				if seen[name] {
					t.Errorf("%s: %s twice", c.Name, name)
				}
				seen[name] = true
			}
		}
		if c.Usage == "" || !strings.HasPrefix(c.UsageText, "clove "+c.Name) {
			t.Errorf("%s: usage %q, %q", c.Name, c.Usage, c.UsageText)
		}
	}
}

// Any command line gives one valid spec or one refusal.
func FuzzCommandLine(f *testing.F) {
	for i, line := range refusals {
		if !testing.Short() || i%10 == 0 { // TestRefusals covers all of them
			f.Add(line)
		}
	}
	for name, sample := range samples {
		f.Add("--" + name + " " + sample + " -- true")
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, flagResult) || strings.Contains(line, flagNetworkLog) || strings.Contains(line, flagIDFile) {
			return // these could write to any file of the host
		}
		b := newBench(t)
		b.host.CPUs = []int{0, 1}
		status, _, stderr := b.clove(append([]string{runName}, strings.Fields(line)...)...)
		spec := b.backend.spec
		switch {
		case spec == nil && status == 0: // help
		case spec == nil:
			if status != agent.ExitStartFailed || stderr == "" {
				t.Errorf("%q: status %d, %q", line, status, stderr)
			}
		default:
			checkSpec(t, *spec)
		}
	})
}

func checkSpec(t *testing.T, s agent.Spec) {
	t.Helper()
	l := s.Limits
	if !s.ID.Valid() || agent.ValidateName(s.Name) != nil || len(s.Command) == 0 || s.Command[0] == "" || s.User.UID > agent.MaxUser || s.User.GID > agent.MaxUser {
		t.Errorf("identity: %+v", s)
	}
	if l.MemoryBytes < agent.MemoryFloorBytes || l.Pids < agent.PidsFloor || l.DiskBytes < agent.DiskFloorBytes || l.ShmBytes <= 0 || l.CPUs < 0 || l.WallClock < 0 || l.CPUTime < 0 {
		t.Errorf("limits: %+v", l)
	}
	if l.MemorySwapBytes != -1 && l.MemorySwapBytes < l.MemoryBytes {
		t.Errorf("swap: %+v", l)
	}
	for _, b := range s.Files.Binds {
		if host.InKernel(b.Target) || b.Target == "/" || strings.Contains(b.Target, "..") && strings.Contains(b.Target+"/", "/../") {
			t.Errorf("bind: %+v", b)
		}
	}
	if !slices.Contains(agent.NetworkModes, s.Network) || s.Seccomp.Profile == "" ||
		(s.Network == agent.NetworkNone || s.Network == agent.NetworkHost) && len(s.Egress.Rules) > 0 {
		t.Errorf("walls: %+v", s)
	}
}
