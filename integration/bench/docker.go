package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// whatDocker is the whole command `docker run --rm IMAGE true`, with Docker's own
// network.
const whatDocker = "docker run"

// peerDocker is the runtime that `docker run` uses by default.
const peerDocker = "docker's runc"

// dockerPeers are the runtimes of one engine. The engine does the work, so CPU time and
// memory of its client mean nothing.
var dockerPeers = []peer{
	{name: peerDocker, does: "Docker's own defaults with the runc that its package brings", command: engineCommand(""), foreign: true},
	{name: "docker, clove-oci", does: "that with clove-oci", command: engineCommand("clove"), foreign: true},
	{name: "docker, runc " + runcVersion, does: "that with the runc whose library clove-oci is built with", command: engineCommand(worldRunc), foreign: true},
}

// engineCommand is `docker run` with a runtime; "" is the engine's default.
func engineCommand(runtime string) func(*bench, string, ...string) []string {
	return func(_ *bench, id string, program ...string) []string {
		argv := []string{"docker", "run", "--rm", "--name", id}
		if runtime != "" {
			argv = append(argv, "--runtime", runtime)
		}
		return append(append(argv, engineImage), program...)
	}
}

// worldTools are the programs that the isolated environment and the engine in it need.
var worldTools = []string{"tini", "busybox", "dockerd", "docker", "containerd", "runc", "iptables", "ip"}

// engineResults is what the measurement in the isolated environment prints.
type engineResults struct {
	Engine  string   `json:"engine"` // versions
	Figures []figure `json:"figures"`
}

// measureDocker measures with an engine of its own in an isolated environment, as the
// tests of integration/engines do. An engine of this machine is neither used nor
// disturbed.
func (b *bench) measureDocker(t *table) error {
	if err := b.readyWorld(); err != nil {
		t.Absent[peerDocker] = err.Error()
		return nil
	}
	if err := b.buildRunc(); err != nil {
		return err
	}
	bin, stage := filepath.Join(b.scratch, "world-bin"), filepath.Join(b.scratch, "world")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Mkdir(stage, 0o755)); err != nil {
		return err
	}
	for name, path := range map[string]string{worldBench: b.self, worldOCI: b.oci(), worldRunc: b.runc} {
		if err := copyProgram(path, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	said, err := b.runWorld(stage, bin)
	if err != nil {
		return err
	}
	var out engineResults
	if err := json.Unmarshal(said, &out); err != nil {
		return fmt.Errorf("cannot read what the engine's world measured: %w", err)
	}
	t.Figures = append(t.Figures, out.Figures...)
	t.describe("the engine", out.Engine)
	for _, p := range dockerPeers {
		t.describe(p.name, p.does)
	}
	return nil
}

// readyWorld returns all that is missing at once: a bench takes minutes until it gets
// here.
func (b *bench) readyWorld() error {
	_, err := os.Stat(b.world)
	for _, name := range worldTools {
		_, missing := exec.LookPath(name)
		err = errors.Join(err, missing)
	}
	return err
}

// runWorld returns what this binary printed as the environment's only program. The end
// of the environment's PID 1 also ends the engine and everything that it started.
func (b *bench) runWorld(stage, bin string) ([]byte, error) {
	world := exec.Command(b.world, filepath.Base(b.scratch), stage, bin,
		"tini", "--", filepath.Join(worldDir, worldBench), roleEngine, strconv.Itoa(b.rounds))
	var said bytes.Buffer
	var stderr tail
	world.Stdout, world.Stderr = &said, &stderr
	if err := world.Run(); err != nil {
		return nil, fmt.Errorf("cannot measure docker: %w: %s", err, stderr.text)
	}
	return said.Bytes(), nil
}

// copyProgram copies, because the environment does not show the directories of the
// build.
func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
