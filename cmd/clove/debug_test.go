package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/runtime"
)

// unbundle returns the files of an archive, without the directory that contains them.
func unbundle(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(zipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(text)
	}
}

// secretive is a run with a secret in each place that can hold one.
func secretive() agent.Run {
	return agent.Run{State: agent.StateRunning, Lease: &agent.Lease{SupervisorPID: 7}, Spec: agent.Spec{ID: "0123456789abcdef", Name: "one", Detached: true,
		Command: []string{"sh", "-c", "planted-argument"}, Env: []string{"TOKEN=planted-value"}, Labels: map[string]string{"key": "planted-label"},
		Seccomp: agent.Seccomp{Document: []byte("planted-document")}},
		Previous: &agent.Record{Command: []string{"sh", "planted-before"}, Denials: []agent.Denial{{Target: "tcp://planted-denied:1", Rule: "planted-rule"}}}}
}

// The archive has all its parts, each from its source, and no secret.
func TestDebugBundles(t *testing.T) {
	b := newBench(t)
	b.backend.runs = []agent.Run{secretive()}
	b.backend.overview = runtime.StoreOverview{Path: "clove.db", Schema: 2}
	b.backend.history = []agent.RunEvent{{Sequence: 9, Kind: agent.RunStarted, Name: "one"}, {Kind: agent.RunDenied, Detail: "file /planted"}}
	f := b.cloved()
	f.answers[methods.Debug.Name] = func(_ *rpc.Conn, params json.RawMessage) (any, error) {
		var p api.DebugParams
		unmarshal(t, string(params), &p)
		if p.Part == api.DebugHeap {
			return nil, api.Failure(api.CodeInternal, "", "it broke")
		}
		return api.DebugResult{Text: "this is " + string(p.Part)}, nil
	}
	path := filepath.Join(t.TempDir(), "a.tar.gz")
	status, stdout, stderr := b.clove("debug", "-o", path)
	if status != 0 || stdout != path+"\n" || !strings.Contains(stderr, "cloved/heap.txt is missing: it broke") {
		t.Fatalf("%d, %q, %q", status, stdout, stderr)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	files := unbundle(t, path)
	for name, says := range map[string]string{
		"versions.txt": "kernel", "doctor.json": "cpuset controller", "check.json": "[]", "store.json": `"schema": 2`, "runs.json": `"TOKEN=(left out)"`,
		"history.json": `"sequence": 9`, "plans.txt": "plan of one", "supervisors.txt": "cannot be asked", "cloved/goroutines.txt": "this is goroutines",
		"cloved/log.txt": "this is log", "README.txt": "MISSING: it broke",
	} {
		if !strings.Contains(files[name], says) {
			t.Errorf("%s: %q", name, files[name])
		}
	}
	for name, text := range files {
		if strings.Contains(text, "planted") {
			t.Errorf("%s has a secret: %s", name, text)
		}
	}
}

// Without cloved, or with a store that cannot be read, the archive has the rest.
func TestDebugWithoutAnything(t *testing.T) {
	b := newBench(t)
	b.backend.failure = errors.New("the store is gone")
	path := filepath.Join(t.TempDir(), "a.tar.gz")
	status, _, stderr := b.clove("debug", "-o", path, "--root", t.TempDir())
	files := unbundle(t, path)
	if status != 0 || !strings.Contains(stderr, "cloved/log.txt is missing: cloved does not run") || !strings.Contains(stderr, "runs.json is missing: the store is gone") {
		t.Errorf("%d, %q", status, stderr)
	}
	if files["doctor.json"] == "" || files["versions.txt"] == "" || files["runs.json"] != "" {
		t.Errorf("%v", files)
	}
}

func TestDebugRefuses(t *testing.T) {
	b := newBench(t)
	there := b.file("there", "", 0o600)
	for line, says := range map[string]string{
		"debug -o " + there: "cannot make the file", "debug now": "takes no arguments", "debug store a b": "it takes one run", "debug store nobody": "there is no run",
	} {
		if status, _, stderr := b.clove(strings.Fields(line)...); status != exitFailed || !strings.Contains(stderr, says) || !strings.Contains(stderr, "hint:") {
			t.Errorf("%s: %d, %q", line, status, stderr)
		}
	}
	if b.read(there) != "" {
		t.Error("a file that was there was written to")
	}
}

func TestDebugStore(t *testing.T) {
	b := newBench(t)
	b.backend.runs = []agent.Run{secretive()}
	b.backend.overview = runtime.StoreOverview{Path: "clove.db", Schema: 2, Newest: 2}
	status, stdout, _ := b.clove("debug", "store")
	if status != 0 || !strings.Contains(stdout, "schema 2") || !strings.Contains(stdout, "BUCKET") {
		t.Errorf("%d, %q", status, stdout)
	}
	var o runtime.StoreOverview
	_, stdout, _ = b.clove("debug", "store", "--json")
	unmarshal(t, stdout, &o)
	if o.Path != "clove.db" {
		t.Errorf("%q", stdout)
	}
	status, stdout, _ = b.clove("debug", "store", "one")
	if status != 0 || strings.Contains(stdout, "planted") || !strings.Contains(stdout, `"name": "one"`) {
		t.Errorf("%d, %q", status, stdout)
	}
}

func TestDebugConfigurationHasNoComments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("# planted\ngroup: clove # planted\n\nusers:\n  runs: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := debugConfiguration(path)
	if err != nil || string(text) != "group: clove\nusers:\n  runs: 3\n" {
		t.Errorf("%v, %q", err, text)
	}
}

// The archive names the process that holds the lock, without its environment. Another process
// that has the same pid later is not taken for it.
func TestDebugProcess(t *testing.T) {
	state := t.TempDir()
	if _, err := debugProcess(state); err == nil {
		t.Error("there is no lock")
	}
	if err := os.WriteFile(filepath.Join(state, "cloved.lock"), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := debugProcess(state)
	if err != nil || !strings.Contains(string(text), "is gone") {
		t.Errorf("%v, %s", err, text)
	}
}
