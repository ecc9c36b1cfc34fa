//go:build root

package oci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// hook writes its name and its standard input to a file.
func hook(name, log string) []specs.Hook {
	return []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", "printf '%s ' $0 >>" + log + "; tr -d '\\n' >>" + log + "; echo >>" + log, name}}}
}

// TestHooksComeInOrder: each with the container's state on its standard input.
func TestHooksComeInOrder(t *testing.T) {
	r := newRuntime(t)
	shared := directory(t, r)
	log := filepath.Join(shared, "log")
	bundle := r.Bundle("echo process >>/tmp/log", bind(shared, "/tmp"), func(s *specs.Spec) {
		s.Annotations = map[string]string{"org.example": "seen"}
		s.Hooks = &specs.Hooks{
			//lint:ignore SA1019 Docker up to 27 makes its networks in it
			Prestart:      hook("prestart", log),
			CreateRuntime: hook("createRuntime", log), CreateContainer: hook("createContainer", log),
			StartContainer: hook("startContainer", "/tmp/log"), // inside
			Poststart:      hook("poststart", log), Poststop: hook("poststop", log),
		}
	})
	r.Must("create", "--bundle", bundle, "one")
	// With runc, too, poststart comes this early: in create, not after start.
	want := "prestart creating createRuntime creating createContainer creating poststart created"
	if got := told(t, log, bundle); got != want {
		t.Errorf("after create:\n got %s\nwant %s", got, want)
	}
	r.Must("start", "one")
	want += " startContainer created process"
	r.Await("the process", func() bool { return strings.HasSuffix(told(t, log, bundle), " process") })
	r.Await("the end", func() bool { return r.State("one").Status == specs.StateStopped })
	r.Must("delete", "one")
	if got := told(t, log, bundle); got != want+" poststop stopped" {
		t.Errorf("after delete:\n got %s\nwant %s poststop stopped", got, want)
	}
}

// told returns the hooks that wrote to the log, each with the container's state.
func told(t *testing.T, log, bundle string) string {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		name, input, hooked := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, name)
		if !hooked {
			continue
		}
		var state specs.State
		if err := json.Unmarshal([]byte(input), &state); err != nil || state.ID != "one" || state.Bundle != bundle || state.Annotations["org.example"] != "seen" {
			t.Errorf("%s got %s, %v", name, input, err)
		}
		all = append(all, string(state.Status))
	}
	return strings.Join(all, " ")
}

// TestAHookThatFailsEndsIt: everything that was made is removed. The command's status is 1,
// not the hook's. If a hook inside fails, that is already the end of the container's process.
func TestAHookThatFailsEndsIt(t *testing.T) {
	r := newRuntime(t)
	failing := []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", "echo for a reason >&2; exit 3"}}}
	endless := []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", "exec sleep 1000"}, Timeout: new(1)}}
	for name, row := range map[string]struct {
		hooks  *specs.Hooks
		status int
		said   string
	}{
		"none":            {nil, 0, ""},
		"createRuntime":   {&specs.Hooks{CreateRuntime: failing}, 1, "stderr: for a reason"},
		"createContainer": {&specs.Hooks{CreateContainer: failing}, 1, "stderr: for a reason"},
		"startContainer":  {&specs.Hooks{StartContainer: failing}, 255, "stderr: for a reason"},
		"no end":          {&specs.Hooks{CreateRuntime: endless}, 1, "hook ran past specified timeout"},
	} {
		got := r.Do("run", "--bundle", r.Bundle("echo ran", func(s *specs.Spec) { s.Hooks = row.hooks }), "one")
		if got.Status != row.status || strings.Contains(got.Out, "ran") != (row.hooks == nil) || !strings.Contains(got.Err, row.said) {
			t.Errorf("%s: %+v", name, got)
		}
		if entries, _ := os.ReadDir(r.Root); len(entries) != 0 {
			t.Errorf("%s left %v", name, entries)
		}
	}
}
