package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
	"clove.run/clove/secrets"
)

// samples give every flag of run a value that differs from its default. A flag that is missing
// here or changes nothing should not exist.
var samples = map[string]string{
	settings.Memory: "64M", settings.MemorySwap: "2G", settings.CPUs: "1", settings.CPUSet: "1", settings.Pids: "64", settings.Ulimit: "nofile=10",
	settings.CPUTime: "1", settings.Timeout: "1", settings.StopTimeout: "1", settings.StartTimeout: "9", settings.Output: "1M", settings.Disk: "64M", settings.ShmSize: "1M",
	settings.Volume: "./folder:/data", settings.HomeDir: "folder", settings.KeptHome: "mine", settings.Keep: "/memory", settings.Tmpfs: "/run", settings.Root: "", settings.Read: "/usr", flagRootfs: "folder", settings.Workspace: "work", settings.GitDir: "folder", settings.Python: "base/bin/python3.11",
	flagEnv: "A=1", settings.EnvFile: "vars", flagWorkdir: "/tmp", flagUser: "root", flagName: "mine", settings.Label: "a=b", settings.Hostname: "box",
	flagNetwork: "public", settings.Allow: "example.com", settings.Deny: "example.com", settings.Publish: "8080:80", settings.HostPort: "80",
	settings.StopSignal: "INT", settings.Mount: "type=bind,source=folder,target=/data", settings.AddHost: "db.example:10.0.0.5", settings.CapDrop: "CHOWN",
	settings.NetConnections: "1", settings.NetRate: "1", settings.NetBytes: "1M",
	flagGrant: "tool:fetch", settings.StdoutTo: "mail:a", settings.StdinFrom: "mail:a", settings.Model: "small", flagBudget: "reviews=10", flagAtEnd: "pause", settings.OnWarn: "true", settings.OnEnd: "https://a.example/", settings.OnDenial: "end", settings.Asks: "net", flagNamespace: "acme/research", settings.AgentSocket: "",
	settings.Seccomp: "strict", flagShadow: "minimal", settings.AllowUnenforced: agent.ControlCPU, flagTTY: "", settings.Remove: "",
	// Flags that a spec does not show: their default is the only choice, or they concern the
	// output and are tested there.
	flagPolicy: "standard", flagInteractive: "", flagResult: "record.json", flagJSON: "", flagDebug: "", flagClipboard: "", flagNetworkLog: "decisions.jsonl",
	flagOption: "no-new-privileges", flagInit: "", flagIDFile: "id", flagLearn: "learned.yaml",
}

var notInTheSpec = []string{flagPolicy, flagInteractive, flagResult, flagJSON, flagDebug, flagClipboard, flagNetworkLog, flagOption, flagInit, flagIDFile}

// testedByThemselves: one flag shows a spec instead of running it, one needs a network, one a
// read-only root, one a kept home, one a command without a script, one a model, the others cloved.
var testedByThemselves = []string{flagExplainNetwork, settings.DNS, settings.Execute, settings.Keep, flagEntry, settings.ModelSetup, settings.Detach, flagRestart, flagAfter, settings.Priority, flagDelay, settings.Schedule, settings.KeepFiles, settings.Ready, settings.ReadyIn, settings.ModelLog, flagLearnNetwork, flagLearnReads, settings.SpawnDepth, settings.Orphans, settings.Idle, settings.OnAsk, settings.Secret, settings.OnAskKey, settings.AskHold}

// What holds for children is in the spec of a run that may start some, and is refused for another.
func TestFlagsForChildren(t *testing.T) {
	for flag, sample := range map[string]string{settings.SpawnDepth: "2", settings.Orphans: agent.OrphansKeep} {
		b := interpreterBench(t)
		b.cloved()
		b.file("work/agent.py", "", 0o644)
		spec := b.spec("--grant", "spawn:worker", "--"+flag, sample, "work/agent.py")
		if k := spec.Kernel; (k.SpawnDepth == 2) != (flag == settings.SpawnDepth) || (k.Orphans == agent.OrphansKeep) != (flag == settings.Orphans) {
			t.Errorf("%s: %+v", flag, k)
		}
		if status, _, stderr := b.clove("run", "--"+flag, sample, "work/agent.py"); status != 125 || !strings.Contains(stderr, "add --grant spawn:NAME") {
			t.Errorf("%s: %d, %s", flag, status, stderr)
		}
	}
}

// A command that answers questions, and the key of its proofs, are in the spec of a run that asks people, and only together.
func TestOnAsk(t *testing.T) {
	b := interpreterBench(t)
	b.cloved()
	b.file("work/agent.py", "", 0o644)
	together := []string{"--ask", "net", "--on-ask", "true", "--on-ask-key", "/root/key"}
	if k := b.spec(append(together, "work/agent.py")...).Kernel; k.OnAsk != "true" || k.OnAskKey != "/root/key" {
		t.Errorf("%+v", k)
	}
	for first := 0; first < len(together); first += 2 {
		rest := slices.Concat(together[:first], together[first+2:])
		if status, _, stderr := b.clove(append(append([]string{"run"}, rest...), "work/agent.py")...); status != 125 || !strings.Contains(stderr, "--on-ask") {
			t.Errorf("%q: %d, %s", rest, status, stderr)
		}
	}
}

// keptSecret is what a cloved that keeps the secret TOKEN answers.
var keptSecret = api.SecretListResult{Secrets: []api.Secret{{Name: "TOKEN", Terms: secrets.Terms{Hosts: []string{"api.example.com:443"}, Header: secrets.DefaultHeader}}}}

// A secret is in the spec of a run with a network, in its place; what could not be used is refused.
func TestSecretFlag(t *testing.T) {
	b := interpreterBench(t)
	b.cloved().answer(methods.SecretList.Name, keptSecret)
	b.file("work/agent.py", "", 0o644)
	if k := b.spec("--network", "public", "--secret", "TOKEN:env=T", "--secret", "TOKEN:git", "work/agent.py").Kernel; !slices.Equal(k.Secrets, []string{"TOKEN:env=T", "TOKEN:git"}) {
		t.Errorf("%+v", k)
	}
	for flags, want := range map[string]string{
		"--secret TOKEN:env=T":                                       "the network is none",
		"--network public --secret TOKEN":                            "does not say how the run gets the secret",
		"--network public --secret TOKEN:env=T --secret OTHER:env=T": "have the same place",
		"--network public -e T=1 --secret TOKEN:env=T":               "is set already",
		"--network public --secret TOKEN:file=relative":              "does not say how the run gets the secret",
		"--network public --secret T/K:env=T":                        "is no name of a secret",
		"--network public --secret MISSING:env=T":                    "there is no secret",
		"--network public --secret TOKEN:svn":                        "does not say how the run gets the secret",
	} {
		if status, _, stderr := b.clove(append(append([]string{"run"}, strings.Fields(flags)...), "work/agent.py")...); status != 125 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d, %s", flags, status, stderr)
		}
	}
}

// The time for which connections are held is in the spec of a run that asks people, and refused out of its bounds and for others.
func TestAskHold(t *testing.T) {
	b := interpreterBench(t)
	f := b.cloved()
	f.answer(methods.RunStart.Name, api.RunResult{})
	b.file("work/agent.py", "", 0o644)
	if status, _, stderr := b.clove("run", "-d", "--ask", "net", "--ask-hold", "90s", "work/agent.py"); status != 0 {
		t.Fatal(stderr)
	}
	var asked api.StartParams
	if f.heard(methods.RunStart.Name, &asked); asked.Spec.Kernel.AskHold != 90*time.Second {
		t.Errorf("%s", asked.Spec.Kernel.AskHold)
	}
	for want, flags := range map[string][]string{
		"use 1s to 1h0m0s": {"--ask", "net", "--ask-hold", "10ms"}, "a connection cannot be held for 2h0m0s": {"--ask", "net", "--ask-hold", "2h"},
		"add --ask net": {"--ask-hold", "1m"}, "hint: ": {"--ask", "net", "--ask-hold", "-1"},
	} {
		status, _, stderr := b.clove(slices.Concat([]string{"run", "-d"}, flags, []string{"work/agent.py"})...)
		if status != 125 || !strings.Contains(stderr, want) || strings.Count(stderr, "hint: ") != 1 {
			t.Errorf("%q: %d, %s", flags, status, stderr)
		}
	}
}

// The time after which a waiting agent is ended is in the spec of a run that cloved starts and whose agent has a socket,
// and refused for others.
func TestIdle(t *testing.T) {
	b := interpreterBench(t)
	f := b.cloved()
	f.answer(methods.RunStart.Name, api.RunResult{})
	b.file("work/agent.py", "", 0o644)
	if status, _, stderr := b.clove("run", "-d", "--agent-socket", "--idle", "90", "work/agent.py"); status != 0 {
		t.Fatal(stderr)
	}
	var asked api.StartParams
	if f.heard(methods.RunStart.Name, &asked); asked.Spec.Kernel.Idle != 90*time.Second {
		t.Errorf("%s", asked.Spec.Kernel.Idle)
	}
	for want, flags := range map[string][]string{
		"start it with run -d, or omit --idle": {"--agent-socket", "--idle", "1m"}, "add --agent-socket or a grant": {"-d", "--idle", "1m"},
		"give a time of at least 1s": {"-d", "--agent-socket", "--idle", "10ms"}, "hint: ": {"-d", "--agent-socket", "--idle", "-1"},
	} {
		status, _, stderr := b.clove(slices.Concat([]string{"run"}, flags, []string{"work/agent.py"})...)
		if status != 125 || !strings.Contains(stderr, want) || !strings.Contains(stderr, "idle") || strings.Count(stderr, "hint: ") != 1 {
			t.Errorf("%q: %d, %s", flags, status, stderr)
		}
	}
}

// A log of what calls of models say is kept only where the run asks for it.
func TestModelLog(t *testing.T) {
	for _, log := range []bool{false, true} {
		flags := []string{"--model", "echo"}
		if log {
			flags = append(flags, "--"+settings.ModelLog)
		}
		if spec := interpreterBench(t).spec(append(flags, "--", "true")...); spec.Kernel.ModelLog != log {
			t.Errorf("%v: %+v", flags, spec.Kernel)
		}
	}
}

// A folder is kept with a home, wherever the flags stand, and refused without one or at another mount.
func TestKeptFolders(t *testing.T) {
	if spec := interpreterBench(t).spec("--keep", "/memory", "--home", "mine", "--keep", "/notes", "--", "true"); !slices.Equal(spec.Files.Keep, []string{"/memory", "/notes"}) {
		t.Errorf("%q", spec.Files.Keep)
	}
	for want, flags := range map[string][]string{
		"for an agent with a kept home only": {"--keep", "/memory"}, "something else is there": {"--home", "mine", "--keep", "/memory", "--tmpfs", "/memory"}, "it is in /workspace": {"--home", "mine", "--keep", "/workspace/memory"},
	} {
		if status, _, stderr := interpreterBench(t).clove(slices.Concat([]string{"run"}, flags, []string{"--", "true"})...); status != 125 || !strings.Contains(stderr, "clove: --keep: ") || !strings.Contains(stderr, want) || strings.Count(stderr, "hint: ") != 1 {
			t.Errorf("%q: %d, %s", flags, status, stderr)
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
		b.host.Environ = append(b.host.Environ, "HOME="+b.host.Dir)
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
		if name == settings.Workspace {
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
