package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The measurements of a container's life under an engine. The program runs
// between start and delete; that time is not counted.
const (
	whatLife   = "create, start, delete"
	whatCreate = "create"
	whatStart  = "start"
	whatDelete = "delete"
)

const roleLife = "life"

const peerDeadline = "clove-oci, deadline"

// lives are the runtimes that an engine can call.
var lives = []peer{
	{name: reference, does: peerNamed(reference).does, command: func(b *bench, id string, program ...string) []string {
		return b.lifeCommand(b.runc, b.bundle(program), id)
	}},
	{name: peerOCI, does: peerNamed(peerOCI).does, command: func(b *bench, id string, program ...string) []string {
		return b.lifeCommand(b.oci(), b.bundle(program), id)
	}},
	{name: peerDeadline, does: "that, and has a monitor enforce run.clove.timeout", command: func(b *bench, id string, program ...string) []string {
		return b.lifeCommand(b.oci(), b.timedBundle(program), id)
	}},
}

// lifeCommand runs this binary in the role of a shim.
func (b *bench) lifeCommand(runtime, bundle, id string) []string {
	return []string{b.self, roleLife, runtime, filepath.Join(b.scratch, filepath.Base(runtime)), bundle, id}
}

// measureLives comes after the runs of bundles, which prepare the runtimes and bundles
// that it uses.
func (b *bench) measureLives(t *table) error {
	if t.Absent[reference] != "" || t.Absent[peerOCI] != "" {
		return nil
	}
	s, err := b.inRounds(func(_ int, s samples) error {
		for _, p := range lives {
			t.describe(p.name, p.does)
			stages, err := b.live(p)
			if err != nil {
				return fmt.Errorf("cannot measure %s: %w", p.name, err)
			}
			for _, stage := range stages {
				s.add(stage.What, p.name, stage.MS)
				s.add(cpuOf(stage.What), p.name, stage.CPUMS)
			}
		}
		return nil
	})
	for _, what := range []string{whatLife, whatCreate, whatStart, whatDelete} {
		t.Figures = append(t.Figures, figuresOf(lives, reference, what, s)...)
	}
	return err
}

// live creates, starts and deletes one container, and returns what the process in the
// role of the shim measured.
func (b *bench) live(p peer) (stages []stage, err error) {
	said, err := b.said(b.prepare(p, programTrue))
	if err != nil {
		return nil, err
	}
	return stages, json.Unmarshal(said, &stages)
}

// stage is the cost of one call of a runtime.
type stage struct {
	What  string  `json:"what"`
	MS    float64 `json:"ms"`
	CPUMS float64 `json:"cpu_ms"`
}

// lifeMain is main of this binary in the role of a shim. The arguments are the runtime,
// its root, the bundle and the container's id.
func lifeMain(args []string) error {
	if len(args) != 4 {
		return errors.New("bench life RUNTIME ROOT BUNDLE ID")
	}
	stages, err := leadLife(args[0], args[1], args[2], args[3])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(stages)
}

// leadLife calls a runtime as a shim does. Like a shim it is a subreaper: the
// container's process becomes its child when create has ended.
func leadLife(runtime, root, bundle, id string) ([]stage, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "clove-bench-life-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	pidFile := filepath.Join(dir, "pid")
	var stages []stage
	call := func(what string, args ...string) error {
		s, err := callRuntime(what, append([]string{runtime, "--root", root, what}, args...))
		stages = append(stages, s)
		return err
	}
	if err := call(whatCreate, "--bundle", bundle, "--pid-file", pidFile, id); err != nil {
		return nil, err
	}
	// After a failure the container is deleted by force, or it would stay on the host.
	err = call(whatStart, id)
	if err == nil {
		err = awaitEnd(pidFile)
	}
	if err != nil {
		return nil, errors.Join(err, call(whatDelete, "--force", id))
	}
	if err := call(whatDelete, id); err != nil {
		return nil, err
	}
	whole, err := wholeLife(stages)
	return append(stages, whole), err
}

// callRuntime makes one call. The container gets this process's standard error, and no
// input or output.
func callRuntime(what string, argv []string) (stage, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return stage{}, fmt.Errorf("%v: %w", argv, err)
	}
	took := time.Since(began)
	return stage{What: what, MS: millis(took), CPUMS: millis(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())}, nil
}

// awaitEnd waits for the container's process, because delete refuses one that runs. The
// time in between is not measured.
func awaitEnd(pidFile string) error {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	var status unix.WaitStatus
	if err := wait(pid, &status); err != nil {
		return fmt.Errorf("cannot wait for the container's process %d: %w", pid, err)
	}
	if status != 0 {
		return fmt.Errorf("the container's process ended with %#x", int(status))
	}
	return nil
}

// wait repeats wait4(2) after a signal.
func wait(pid int, status *unix.WaitStatus) error {
	for {
		if _, err := unix.Wait4(pid, status, 0, nil); err != unix.EINTR {
			return err
		}
	}
}

// wholeLife adds the calls up. Its CPU time includes the container's first process and
// the monitor, which were reaped by now and so count among this process's children.
func wholeLife(stages []stage) (stage, error) {
	whole := stage{What: whatLife}
	for _, s := range stages {
		whole.MS += s.MS
	}
	for {
		if err := wait(-1, nil); err == unix.ECHILD {
			break
		} else if err != nil {
			return whole, err
		}
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &usage); err != nil {
		return whole, err
	}
	whole.CPUMS = millis(time.Duration(usage.Utime.Nano() + usage.Stime.Nano()))
	return whole, nil
}
