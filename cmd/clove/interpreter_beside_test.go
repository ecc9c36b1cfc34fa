package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// A script uses the virtual environment beside it, unless the user names another interpreter.
func TestVirtualEnvironmentBesideTheScript(t *testing.T) {
	venv := needs{"work/.venv/bin/python3", []string{"work/.venv"}, nil, "work/.venv/bin"}
	for name, row := range map[string]struct {
		make func(*bench)
		args []string
		want needs
	}{
		"beside":         {func(*bench) {}, []string{"work/agent.py"}, venv},
		"by its line":    {func(b *bench) { b.file("work/tool", "#!/usr/bin/env python3\n", 0o755) }, []string{"work/tool"}, venv},
		"not Python":     {func(b *bench) { b.file("work/x.sh", "", 0o755) }, []string{"work/x.sh"}, needs{program: "base/bin/bash"}},
		"another script": {func(b *bench) { b.file("other/agent.py", "", 0o644) }, []string{"other/agent.py"}, needs{program: "base/bin/python3"}},
		"named":          {func(*bench) {}, []string{"--python", "python3", "work/agent.py"}, needs{program: "base/bin/python3"}},
		"active": {func(b *bench) {
			b.virtual("mine", "base/bin", b.host.Dir+"/base/bin/python3")
			b.path("mine/bin", "base/bin")
			b.setenv("VIRTUAL_ENV=" + b.host.Dir + "/mine")
		}, []string{"work/agent.py"}, needs{"mine/bin/python3", []string{"mine"}, nil, "mine/bin"}},
	} {
		b := interpreterBench(t)
		b.virtual("work/.venv", "base/bin", b.host.Dir+"/base/bin/python3")
		row.make(b)
		if got := b.needs(row.args...); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, row.want)
		}
	}
	b := interpreterBench(t)
	b.virtual("work/.venv", "base/bin", b.host.Dir+"/base/bin/gone")
	if status, _, stderr := b.clove("run", "work/agent.py"); status != agent.ExitStartFailed || !strings.Contains(stderr, ".venv has no Python that works") {
		t.Errorf("a broken one: %d, %q", status, stderr)
	}
}

// A member cannot show directories of the host, so the interpreter must be in the workspace.
func TestVirtualEnvironmentOfAMember(t *testing.T) {
	b := interpreterBench(t)
	b.virtual("work/.venv", "base/bin", b.host.Dir+"/base/bin/python3")
	b.host.UID = 1000
	f := b.cloved()
	f.answer(methods.RunStart.Name, api.RunResult{})
	if status, _, stderr := b.clove("run", "-d", "work/agent.py"); status != 0 {
		t.Fatal(stderr)
	}
	var asked api.StartParams
	f.heard(methods.RunStart.Name, &asked)
	spec := asked.Spec
	if spec.Command[0] != "/workspace/.venv/bin/python3" || len(spec.Files.Prefixes) > 0 || !strings.HasPrefix(variables(spec)["PATH"], "/workspace/.venv/bin:") {
		t.Errorf("%q, %q, %q", spec.Command, spec.Files.Prefixes, variables(spec)["PATH"])
	}
}

// If a command that names a file of the folder fails, the message says how to see the folder
// inside.
func TestTellsOfFilesThatTheAgentDoesNotSee(t *testing.T) {
	for line, want := range map[string]bool{
		"-- python3 agent.py":                        true,
		"-- ./agent.py":                              true,
		"-- python3 ./agent.py --flag":               true,
		"--workspace . -- python3 agent.py":          false,
		"-- python3 gone.py":                         false,
		"-- agent.py":                                false, // looked for in PATH
		"-- cat ../work/agent.py /etc/passwd -x -- ": false,
	} {
		for code, failed := range map[int]bool{2: true, 0: false} {
			b := interpreterBench(t)
			b.host.Dir = filepath.Join(b.host.Dir, "work")
			b.backend.record = agent.Record{Status: agent.StatusExited, ExitCode: code}
			_, _, stderr := b.clove(append([]string{"run"}, strings.Fields(line)...)...)
			if told := strings.Contains(stderr, "--workspace ."); told != (want && failed) {
				t.Errorf("%s, exit %d: %q", line, code, stderr)
			}
		}
	}
}
