package runtime

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

func predicted(t *testing.T, change func(*agent.Spec)) *Prediction {
	t.Helper()
	spec := agent.Spec{User: agent.User{Name: "agent", UID: 1000, GID: 1000}, Seccomp: agent.Seccomp{Profile: "standard"},
		Limits: agent.Limits{MemoryBytes: 1 << 30, DiskBytes: 1 << 30, ShmBytes: 1 << 20}}
	if change != nil {
		change(&spec)
	}
	f, err := Predict(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestForeseenFiles(t *testing.T) {
	t.Parallel()
	free := predicted(t, nil)
	narrow := predicted(t, func(s *agent.Spec) { s.Files.ReadOnly, s.Files.Writable = true, []string{"/tmp"} })
	listed := predicted(t, func(s *agent.Spec) {
		s.Files.ReadOnly, s.Files.Execute = true, []string{"/usr/bin/env", "/usr/lib/git-core", "/tmp/x"}
	})
	reads := predicted(t, func(s *agent.Spec) { s.Files.Read = []string{"/usr", "/workspace/src"} })
	for _, row := range []struct {
		f    *Prediction
		at   string
		want Access
	}{
		{reads, "/usr/bin/env", Access{Read: true, Execute: true}},
		{reads, "/opt/tool", Access{}},
		{reads, "/etc/passwd", Access{}},
		{reads, "/workspace/src/a", Access{Read: true, Write: true, Execute: true}},
		{reads, "/workspace/.env", Access{Write: true}},
		{reads, "/tmp/x", Access{Read: true, Write: true, Execute: true}},
		{reads, "/dev/shm/x", Access{Read: true, Write: true}},
		{reads, "/proc/self/oom_score_adj", Access{Read: true, Write: true}},
		{reads, "/sys/fs/cgroup/x", Access{}},
		{free, "/usr/bin/env", Access{Read: true, Execute: true}},
		{free, "/tmp/../root/x", Access{}},
		{free, "/tmp/x", Access{Read: true, Write: true, Execute: true}},
		{free, "/dev/shm/x", Access{Read: true, Write: true}},
		{free, "/dev/null", Access{Read: true, Write: true}},
		{free, "/dev/stdout", Access{Read: true, Write: true}},
		{free, "/dev/sda", Access{}},
		{free, "/dev", Access{Read: true}},
		{free, "/proc/self/oom_score_adj", Access{Read: true, Write: true}},
		{free, "/proc/sys/kernel/panic", Access{Read: true}},
		{free, "/proc/kcore", Access{}},
		{free, "/sys/fs/cgroup/x", Access{Read: true}},
		{free, "/sys/firmware", Access{}},
		{narrow, "/tmp/x", Access{Read: true, Write: true, Execute: true}},
		{narrow, "/dev/shm/x", Access{Read: true}},
		{narrow, "/dev/mqueue/x", Access{Read: true}},
		{narrow, "/dev/null", Access{Read: true, Write: true}},
		{narrow, "/workspace", Access{Read: true, Execute: true}},
		{listed, "/usr/bin/env", Access{Read: true, Execute: true}},
		{listed, "/usr/lib/git-core/git", Access{Read: true, Execute: true}},
		{listed, "/usr/bin/gcc", Access{Read: true}},
		{listed, "/tmp/x", Access{Read: true, Write: true}},
	} {
		got, err := row.f.File(row.at)
		if err != nil || got.By == "" {
			t.Errorf("%s: %+v, %v", row.at, got, err)
		}
		if got.By = ""; got != row.want {
			t.Errorf("%s: %+v, want %+v", row.at, got, row.want)
		}
	}
	for _, at := range []string{"", "x", "/a\x00"} {
		if _, err := free.File(at); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%q: %v", at, err)
		}
	}
}

func TestForeseenCalls(t *testing.T) {
	t.Parallel()
	document := []byte(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["setsid"],"action":"SCMP_ACT_ERRNO","errnoRet":22},{"names":["mount"],"action":"SCMP_ACT_KILL_PROCESS"}]}`)
	own := func(s *agent.Spec) { s.Seccomp = agent.Seccomp{Profile: "/p.json", Document: document} }
	named := func(name string) func(*agent.Spec) { return func(s *agent.Spec) { s.Seccomp.Profile = name } }
	for _, row := range []struct {
		change  func(*agent.Spec)
		call    string
		args    [6]uint64
		allowed bool
		errno   unix.Errno
	}{
		{nil, "openat", [6]uint64{}, true, 0},
		{nil, "mount", [6]uint64{}, false, unix.EPERM},
		{named("unconfined"), "mount", [6]uint64{}, true, 0},
		{named("strict"), "socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, false, unix.EPERM},
		{named("strict"), "socket", [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, true, 0},
		{named("minimal"), "fork", [6]uint64{}, false, unix.EPERM},
		{own, "setsid", [6]uint64{}, false, unix.EINVAL},
		{own, "mount", [6]uint64{}, false, 0},
		{own, "bpf", [6]uint64{}, true, 0}, // a document does what it says
		{own, "getpid", [6]uint64{}, true, 0},
	} {
		f := predicted(t, row.change)
		allowed, by, err := f.Call(row.call, row.args)
		if err != nil || allowed != row.allowed || f.Errno(row.call, row.args) != int(row.errno) || !strings.HasPrefix(by, "seccomp ") {
			t.Errorf("%s: %t, %d, %q, %v", row.call, allowed, f.Errno(row.call, row.args), by, err)
		}
	}
	if _, _, err := predicted(t, nil).Call("nonsense", [6]uint64{}); agent.KindOf(err) != agent.KindInvalid || agent.FailureOf(err).Hint == "" {
		t.Errorf("%v", err)
	}
}

func TestForeseeRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Predict(agent.Spec{Seccomp: agent.Seccomp{Profile: "none such"}}); err == nil {
		t.Error("a profile that does not exist is accepted")
	}
}
