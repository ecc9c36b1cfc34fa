package runtime

import (
	"os"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/landlock"
	"clove.run/clove/policies"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

// rulesOfSpec are a run's rules by path; nil where it is in no domain.
func rulesOfSpec(t *testing.T, spec agent.Spec, how string) (map[string]landlock.Right, bool) {
	t.Helper()
	spec.ID = "0123456789abcdef"
	filter, err := profile(spec)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := rootfs.NewPlan(rootConfig(DefaultPaths, spec, agent.FirstHostID))
	if err != nil {
		t.Fatal(err)
	}
	rules := domain(spec, plan, filter, how, spec.Files.Read)
	if rules == nil {
		return nil, false
	}
	byPath := map[string]landlock.Right{}
	for _, rule := range rules.Files {
		byPath[rule.Path] |= rule.Rights
	}
	return byPath, rules.NoTCP
}

func TestWhoIsInADomain(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		filter    string
		how       string
		in, noTCP bool
	}{
		{seccomp.Standard, "ABI 7", true, false},
		{seccomp.Strict, "ABI 7", true, true},
		{seccomp.Minimal, "ABI 7", true, true},
		{agent.SeccompUnconfined, "ABI 7", false, false}, // it may mount, and a domain refuses that
		{seccomp.Standard, "", false, false},             // a kernel without Landlock
	} {
		spec := policies.Standard()
		spec.Seccomp.Profile = row.filter
		rules, noTCP := rulesOfSpec(t, spec, row.how)
		if (rules != nil) != row.in || noTCP != row.noTCP {
			t.Errorf("%s on %q: in a domain: %t, without ports: %t", row.filter, row.how, rules != nil, noTCP)
		}
	}
}

func TestRulesOfFiles(t *testing.T) {
	t.Parallel()
	const devices = landlock.Read | landlock.Write | landlock.Device
	const all = readRights | changeRights
	for name, row := range map[string]struct {
		change func(*agent.Spec)
		want   map[string]landlock.Right
	}{
		"standard": {func(*agent.Spec) {}, map[string]landlock.Right{"/": readRights, "/tmp": changeRights, "/usr": changeRights, "/home/agent": changeRights,
			"/dev": devices | all, "/dev/shm": all, "/dev/mqueue": all, "/proc": landlock.Read | landlock.Write, "/sys": 0, "/etc": 0}},
		"root": {func(s *agent.Spec) { s.User = policies.RootUser }, map[string]landlock.Right{"/": all, "/tmp": 0}},
		"one place": {func(s *agent.Spec) { s.Files.ReadOnly, s.Files.Writable = true, []string{"/tmp"} },
			map[string]landlock.Right{"/": readRights, "/tmp": changeRights, "/usr": 0, "/home/agent": 0, "/dev": devices, "/dev/shm": 0, "/dev/mqueue": 0}},
		"shared memory": {func(s *agent.Spec) { s.Files.ReadOnly, s.Files.Writable = true, []string{"/dev/shm"} },
			map[string]landlock.Right{"/": readRights, "/tmp": 0, "/dev": devices, "/dev/shm": all}},
		"a list": {func(s *agent.Spec) { s.Files.ReadOnly, s.Files.Read = true, []string{"/usr", "/workspace/open"} },
			map[string]landlock.Right{"/": 0, "/usr": readRights, "/workspace/open": readRights, "/workspace": changeRights, "/tmp": all, "/var/tmp": all, "/home/agent": all,
				"/dev": devices | all, "/dev/shm": all, "/proc": readRights | landlock.Write, "/etc": 0, "/etc/ld.so.cache": readRights}},
		"a list of root's": {func(s *agent.Spec) { s.User, s.Files.Read = policies.RootUser, []string{"/usr"} },
			map[string]landlock.Right{"/": changeRights, "/usr": readRights, "/tmp": readRights}},
		"a volume at /tmp": {func(s *agent.Spec) {
			s.Files.Read, s.Files.Binds = []string{"/usr"}, []agent.Bind{{Source: "/usr", Target: "/tmp", ReadOnly: true}}
		}, map[string]landlock.Right{"/tmp": changeRights, "/var/tmp": all}},
	} {
		spec := policies.Standard()
		row.change(&spec)
		got, _ := rulesOfSpec(t, spec, "ABI 7")
		for path, want := range row.want {
			if got[path] != want {
				t.Errorf("%s: %s has %b, want %b", name, path, got[path], want)
			}
		}
	}
}

// A file that an agent could have replaced in an earlier start is in no list. The control is a run whose
// files are new.
func TestReadsOfKeptFiles(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		list    []string
		change  func(*agent.Spec)
		refused bool
	}{
		"a part of the workspace":          {[]string{"/usr", "/workspace/src"}, func(*agent.Spec) {}, true},
		"the workspace":                    {[]string{"/usr", "/workspace"}, func(*agent.Spec) {}, false},
		"a part of the base":               {[]string{"/usr/bin", "/workspace"}, func(*agent.Spec) {}, true},
		"a part of a base that is sealed":  {[]string{"/usr/bin", "/workspace"}, func(s *agent.Spec) { s.Files.ReadOnly = true }, false},
		"a workspace that is sealed":       {[]string{"/workspace/src"}, func(s *agent.Spec) { s.Files.ReadOnly, s.Files.Writable = true, []string{"/tmp"} }, false},
		"what root inside replaces":        {[]string{"/usr"}, func(s *agent.Spec) { s.User = policies.RootUser }, true},
		"what root inside does not change": {[]string{"/usr"}, func(s *agent.Spec) { s.User, s.Files.ReadOnly = policies.RootUser, true }, false},
	} {
		workspace := t.TempDir()
		if err := os.Mkdir(workspace+"/src", 0o755); err != nil {
			t.Fatal(err)
		}
		spec := policies.Standard()
		spec.ID, spec.Files.Workspace, spec.Files.Read = "0123456789abcdef", workspace, row.list
		row.change(&spec)
		plan, err := rootfs.NewPlan(rootConfig(DefaultPaths, spec, agent.FirstHostID))
		if err != nil {
			t.Fatal(err)
		}
		paths, err := readable(spec, plan)
		if err != nil {
			t.Fatalf("%s: control: %v", name, err)
		}
		l := &launch{spec: spec, plan: plan, readable: paths}
		if err := l.checkKept(); err != nil {
			t.Errorf("%s: a new layer: %v", name, err)
		}
		l.run.Layer = "kept"
		spec.Restart.Policy = agent.RestartOnFailure
		_, err = readable(spec, plan)
		for _, err := range []error{l.checkKept(), err} {
			if (err != nil) != row.refused || err != nil && (agent.KindOf(err) != agent.KindInvalid || agent.FailureOf(err).Hint == "") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
