package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script writes a program into dir.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDockerRunsDifferInTheRuntimeAlone(t *testing.T) {
	for i, runtime := range []string{"", "clove", "runc-current"} {
		want := []string{"docker", "run", "--rm", "--name", "one"}
		if runtime != "" {
			want = append(want, "--runtime", runtime)
		}
		if got := dockerPeers[i].command(nil, "one", programTrue...); !slices.Equal(got, append(want, engineImage, "/bin/true")) {
			t.Errorf("%s: %q", dockerPeers[i].name, got)
		}
	}
}

// worldBenchOf is a bench whose world is a script, and which has everything it needs.
func worldBenchOf(t *testing.T, text string) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{rounds: 7, scratch: t.TempDir(), self: script(t, dir, "self", ""), clove: filepath.Join(dir, "clove"), cache: dir}
	script(t, dir, "clove-oci", "")
	if err := os.Mkdir(filepath.Join(dir, "runc-"+runcVersion), 0o755); err != nil {
		t.Fatal(err)
	}
	script(t, filepath.Join(dir, "runc-"+runcVersion), "runc", "")
	for _, name := range worldTools {
		script(t, dir, name, "")
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	b.world = script(t, dir, "world", text)
	return b
}

func TestTheWorldsFiguresAreTakenOver(t *testing.T) {
	b := worldBenchOf(t, `ls "$3" | tr '\n' ' ' >&2; shift 3; echo "$*" >&2
		echo '{"engine": "Docker 1", "figures": [{"peer": "clove-oci", "what": "docker run", "values": {"p50": 400}}]}'`)
	table := newTable("commands")
	if err := b.measureDocker(table); err != nil {
		t.Fatal(err)
	}
	if table.Notes[0] != "the engine: Docker 1" || len(table.Figures) != 1 || table.Figures[0].Values.P50 != 400 || len(table.Absent) != 0 {
		t.Errorf("%+v", table)
	}
}

func TestAWorldThatFailsIsToldWithItsWords(t *testing.T) {
	b := worldBenchOf(t, `ls "$3" | tr '\n' ' ' >&2; shift 3; echo "$*" >&2; exit 1`)
	err := b.measureDocker(newTable("commands"))
	for _, want := range []string{"bench clove-oci runc-current", "tini -- /opt/clove/bench engine 7"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestWithoutAnEngineThereIsARowThatSaysSo(t *testing.T) {
	b := worldBenchOf(t, "")
	t.Setenv("PATH", t.TempDir())
	table := newTable("commands")
	if err := b.measureDocker(table); err != nil || !strings.Contains(table.Absent[peerDocker], "dockerd") {
		t.Errorf("%v, %q", err, table.Absent)
	}
}

// An engine is a pair of programs, here in a folder of their own.
func engineOf(t *testing.T, dockerd, docker string) (*engine, error) {
	t.Helper()
	dir := t.TempDir()
	script(t, dir, "dockerd", dockerd)
	script(t, dir, "docker", docker)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DOCKER_HOST", "") // restored after the test
	return startEngine(filepath.Join(dir, "run"))
}

func TestTheEngineServesAndEnds(t *testing.T) {
	e, err := engineOf(t, "exec sleep 600", `test "$DOCKER_HOST" = `+engineSocket)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.end(); err != nil {
		t.Error(err)
	}
	if err := e.end(); err == nil {
		t.Error("an engine that is gone ended in order")
	}
}

func TestAnEngineThatDiesIsNotWaitedFor(t *testing.T) {
	_, err := engineOf(t, "echo no room; exit 1", "exit 1")
	if err == nil || !strings.Contains(err.Error(), "dockerd ended: no room") {
		t.Errorf("%v", err)
	}
}

func TestProcessesGiveWayToAnEngine(t *testing.T) {
	root := t.TempDir()
	if err := giveWay(root); err != nil {
		t.Errorf("v1: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte("17\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := giveWay(root); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(root, "world", "cgroup.procs")); got != "17" {
		t.Errorf("%q moved", got)
	}
	if got := read(t, filepath.Join(root, "cgroup.subtree_control")); !strings.Contains(got, "+memory +pids") {
		t.Errorf("%q handed on", got)
	}
}

func TestTheImageHasTheProgram(t *testing.T) {
	busybox := script(t, t.TempDir(), "busybox", "content\n")
	layer, err := imageLayer(busybox)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content[header.Name] = string(text)
	}
	if content["bin/true"] != "#!/bin/sh\ncontent\n" {
		t.Errorf("%q", content)
	}
	if _, there := content["proc/"]; !there {
		t.Errorf("%q has no place for proc", content)
	}
}
