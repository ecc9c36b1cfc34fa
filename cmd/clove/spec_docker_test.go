package main

import (
	"encoding/json"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/policies/host"
)

// TestDockersFlags: each flag's effect on the spec.
func TestDockersFlags(t *testing.T) {
	hosts := []agent.HostName{{Name: "db.example", Address: netip.MustParseAddr("10.0.0.5")}, {Name: "six", Address: netip.MustParseAddr("2001:db8::1")}}
	for line, want := range map[string]func(*agent.Spec){
		"-- a b":              func(*agent.Spec) {},
		"--entrypoint a -- b": func(*agent.Spec) {},
		"--init --security-opt no-new-privileges -- a b": func(*agent.Spec) {},
		"--security-opt=no-new-privileges:true -- a b":   func(*agent.Spec) {},
		"--entrypoint a":        func(s *agent.Spec) { s.Command = []string{"a"} },
		"--cap-drop all -- a b": func(s *agent.Spec) { s.CapDrop = []string{"ALL"} },
		"--cap-drop chown --cap-drop CAP_KILL --cap-drop CHOWN -- a b":       func(s *agent.Spec) { s.CapDrop = []string{"CAP_CHOWN", "CAP_KILL"} },
		"--add-host db.example:10.0.0.5 --add-host six=[2001:db8::1] -- a b": func(s *agent.Spec) { s.Hosts = hosts },
		"--add-host db.example=10.0.0.5 --add-host six:2001:db8::1 -- a b":   func(s *agent.Spec) { s.Hosts = hosts },
		"--stop-signal int -- a b": func(s *agent.Spec) { s.Limits.StopSignal = 2 },
		"--stop-signal 10 -- a b":  func(s *agent.Spec) { s.Limits.StopSignal = 10 },
		"--mount type=bind,src=folder,dst=/x,ro -- a b": func(s *agent.Spec) {
			s.Files.Binds = []agent.Bind{{Source: "DIR/folder", Target: "/x", ReadOnly: true}}
		},
		"--mount type=bind,source=./folder,destination=/x,readonly=false -- a b": func(s *agent.Spec) {
			s.Files.Binds = []agent.Bind{{Source: "DIR/folder", Target: "/x"}}
		},
		"--mount type=tmpfs,target=/x,tmpfs-size=1M,tmpfs-mode=700 -- a b": func(s *agent.Spec) {
			s.Files.Tmpfs = []agent.Tmpfs{{Target: "/x", SizeBytes: 1 << 20, Mode: 0o700}}
		},
	} {
		b := newBench(t)
		b.file("folder/x", "", 0o644)
		wanted := b.spec("--name", "n", "-e", "X=1", "--", "a", "b")
		want(&wanted)
		for i := range wanted.Files.Binds {
			wanted.Files.Binds[i].Source = strings.Replace(wanted.Files.Binds[i].Source, "DIR", b.host.Dir, 1)
		}
		got := b.spec(append([]string{"--name", "n", "-e", "X=1"}, strings.Fields(line)...)...)
		got.ID, got.Env, wanted.Env = wanted.ID, nil, nil
		if !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s:\n%+v, want\n%+v", line, got, wanted)
		}
	}
}

// TestIDFile: it is written before anything runs, replaces no other run's file, and is not
// written if the run is refused.
func TestIDFile(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.host.Dir, "id")
	b.backend.during = func() {
		if text := b.read(path); text != string(b.backend.spec.ID) {
			t.Errorf("%q, and the run is %s", text, b.backend.spec.ID)
		}
	}
	b.spec("--cidfile", "id", "--", "true")
	first := b.read(path)
	if stderr := newIDBench(b).refuse("--cidfile", "id", "--", "true"); !strings.Contains(stderr, "file exists") || b.read(path) != first {
		t.Errorf("%q, %q", stderr, b.read(path))
	}
	other := newBench(t)
	other.backend.failure = &agent.Error{Kind: agent.KindConflict, Message: "the name is taken"}
	if status, _, _ := other.clove("run", "--cidfile", "id", "--", "true"); status == 0 || host.Exists(filepath.Join(other.host.Dir, "id")) {
		t.Errorf("%d, and there is a file: %v", status, host.Exists(filepath.Join(other.host.Dir, "id")))
	}
	detached := newBench(t)
	f := detached.cloved()
	f.answers[methods.RunStart.Name] = func(*rpc.Conn, json.RawMessage) (any, error) {
		return nil, api.Failure(api.CodeConflict, "", "the name is taken")
	}
	if status, _, _ := detached.clove("run", "-d", "--cidfile", "id", "--", "true"); status == 0 || host.Exists(filepath.Join(detached.host.Dir, "id")) {
		t.Errorf("detached: %d, and there is a file: %v", status, host.Exists(filepath.Join(detached.host.Dir, "id")))
	}
	f.answer(methods.RunStart.Name, api.RunResult{})
	if status, stdout, _ := detached.clove("run", "-d", "--cidfile", "id", "--", "true"); status != 0 || detached.read(filepath.Join(detached.host.Dir, "id")) != strings.TrimSpace(stdout) {
		t.Errorf("control: detached: %d, %q", status, stdout)
	}
}

// newIDBench returns a new bench in the same folder.
func newIDBench(b *bench) *bench {
	again := newBench(b.t)
	again.host.Dir = b.host.Dir
	return again
}

// TestExecAs: the user's name and ids are all passed on, and HOME is the user's home directory
// unless it was given.
func TestExecAs(t *testing.T) {
	for line, want := range map[string]agent.Exec{
		"exec one id":                    {Command: []string{"id"}},
		"exec -u 1234 one id":            {Command: []string{"id"}, User: &agent.User{Name: "1234", UID: 1234, GID: 1234, Home: "/home/agent"}, Env: []string{"HOME=/home/agent"}},
		"exec -u root -e HOME=/x one id": {Command: []string{"id"}, User: &agent.User{Name: "root", Home: "/root"}, Env: []string{"HOME=/x"}},
	} {
		b := newBench(t)
		f := b.cloved()
		f.answer(methods.RunExec.Name, api.ExecResult{})
		var asked api.ExecParams
		b.clove(strings.Fields(line)...)
		f.heard(methods.RunExec.Name, &asked)
		if !reflect.DeepEqual(asked.Exec, want) {
			t.Errorf("%s: %+v", line, asked.Exec)
		}
	}
	if status, _, stderr := newBench(t).clove("exec", "-u", "bob", "one", "id"); status == 0 || !strings.Contains(stderr, `no user "bob"`) {
		t.Errorf("%d, %s", status, stderr)
	}
}

// TestPsFormat: docker's field names, complete and printable; and --last.
func TestPsFormat(t *testing.T) {
	b := newBench(t)
	b.backend.runs = someRuns()
	b.backend.runs[1].Spec.Labels = map[string]string{"b": "\x1b[31m", "a": "1"}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--format", "{{.ID}} {{.Names}}"}, "aaaaaaaaaaaaaaaa live\n"},
		{[]string{"--format", `{{.Names}}\t{{.State}}`, "-a"}, "live\trunning\ndone\tended\n"},
		{[]string{"--format", `table {{.Names}}\t{{.Status}}\t{{.ExitCode}}`, "-a"}, "NAMES  STATUS   EXIT\nlive   running\ndone   oom      137\n"},
		{[]string{"--format", `{{.Labels}} {{.Label "a"}} {{.Label "none"}}.`, "-n", "5", "--filter", "name=done"}, "a=1,b=\\x1b[31m 1 .\n"},
		{[]string{"--format", `{{.Label "b"}} {{.Command}}`, "--last", "2", "--filter", "name=done"}, `\x1b[31m /usr/bin/sh -c \x1b[31mred\n` + strings.Repeat("x", 50) + "\n"},
		{[]string{"--format", `{{.CreatedAt}} {{.RunningFor}} {{.Ran}}`, "-n", "5", "--filter", "name=done"},
			b.backend.runs[1].Created.Local().Format(time.RFC3339) + " 2h ago 1.5s\n"},
		{[]string{"--format", `{{json .Names}}`, "--last", "1"}, "\"live\"\n"},
		{[]string{"--latest", "-q"}, "aaaaaaaaaaaaaaaa\n"},
		{[]string{"--last", "2", "-q"}, "aaaaaaaaaaaaaaaa\nbbbbbbbbbbbbbbbb\n"},
	} {
		if status, stdout, stderr := b.clove(append([]string{"ps"}, c.flags...)...); status != 0 || stdout != c.want || stderr != "" {
			t.Errorf("%q: %d, %q, %q; want %q", c.flags, status, stdout, stderr, c.want)
		}
	}
	for _, flags := range [][]string{
		{"--format", "{{.Image}}"}, {"--format", "{{"}, {"--format", "json"}, {"--format", "{{.ID}}", "-q"}, {"--format", ""},
		{"--last", "0"}, {"--last", "x"}, {"--last", "2", "--latest"},
	} {
		if status, stdout, stderr := b.clove(append([]string{"ps"}, flags...)...); status != exitFailed || stdout != "" || !strings.Contains(stderr, "\nhint: ") {
			t.Errorf("%q: %d, %q, %q", flags, status, stdout, stderr)
		}
	}
	if status, stdout, stderr := b.clove("ps", "--format", "{{.ID}}", "--json"); status != exitFailed || stdout != "" || !strings.Contains(stderr, "formats of their own") {
		t.Errorf("beside --json: %d, %q, %q", status, stdout, stderr)
	}
	if status, stdout, _ := newBench(t).clove("ps", "--format", "{{.Image}}"); status != exitFailed || stdout != "" {
		t.Errorf("with no run to show: %d, %q", status, stdout)
	}
}

// TestCapabilitiesAreTheKernels: --cap-drop accepts exactly the names that clove-init knows.
func TestCapabilitiesAreTheKernels(t *testing.T) {
	numbers := map[int]bool{}
	for _, name := range agent.Capabilities {
		number, known := initproto.CapabilityNumber(name)
		if !known || numbers[number] {
			t.Errorf("%s: %d, %v", name, number, known)
		}
		numbers[number] = true
	}
	for number := range len(numbers) {
		if !numbers[number] {
			t.Errorf("nothing has the number %d", number)
		}
	}
}

// TestExecEnds: how a process ends is passed on, and one without a caller has no streams.
func TestExecEnds(t *testing.T) {
	for line, want := range map[string]api.ExecParams{
		"exec -d one id": {Detach: true},
		"exec --timeout 2m --kill-rest -i one id": {Stdin: true, Exec: agent.Exec{Timeout: 2 * time.Minute, KillRest: true}},
	} {
		b := newBench(t)
		f := b.cloved()
		f.answer(methods.RunExec.Name, api.ExecResult{})
		var asked api.ExecParams
		b.clove(strings.Fields(line)...)
		f.heard(methods.RunExec.Name, &asked)
		want.Run, want.Exec.Command = "one", []string{"id"}
		if !reflect.DeepEqual(asked, want) {
			t.Errorf("%s: %+v", line, asked)
		}
	}
	for _, line := range []string{"exec -dt one id", "exec -d -i one id", "exec --timeout -1 one id"} {
		if status, _, stderr := newBench(t).clove(strings.Fields(line)...); status != agent.ExitStartFailed || !strings.Contains(stderr, "hint:") {
			t.Errorf("%s: %d, %s", line, status, stderr)
		}
	}
}
