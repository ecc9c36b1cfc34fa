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

// What is measured of a container's life as an engine leads it. The program runs
// between start and delete; that time is nobody's.
const (
	whatLife   = "create, start, delete"
	whatCreate = "create"
	whatStart  = "start"
	whatDelete = "delete"
)

const roleLife = "life"

const peerDeadline = "clove-oci, deadline"

// lives are the runtimes that an engine could call.
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

// lifeCommand is this binary in the place of a shim.
func (b *bench) lifeCommand(runtime, bundle, id string) []string {
	return []string{b.self, roleLife, runtime, filepath.Join(b.scratch, filepath.Base(runtime)), bundle, id}
}

// measureLives comes behind the runs of bundles, which made these ready.
func (b *bench) measureLives(r *results) error {
	for _, p := range []string{reference, peerOCI} {
		if r.Absent[p] != "" {
			return nil // it says why
		}
	}
	taken := map[string][][]sample{} // by what, and by the place in lives
	for round := range warmups + b.rounds {
		for i, p := range lives {
			stages, err := b.live(p)
			if err != nil {
				return fmt.Errorf("cannot measure %s: %w", p.name, err)
			}
			for _, s := range stages {
				if taken[s.What] == nil {
					taken[s.What] = make([][]sample, len(lives))
				}
				if round >= warmups {
					taken[s.What][i] = append(taken[s.What][i], sample{took: s.MS, cpu: s.CPUMS})
				}
			}
		}
	}
	for _, what := range []string{whatLife, whatCreate, whatStart, whatDelete} {
		r.Figures = append(r.Figures, figuresOf(lives, reference, what, 1, taken[what])...)
	}
	return nil
}

// live has one container live, and takes over what its engine measured.
func (b *bench) live(p peer) (stages []stage, err error) {
	cmd := b.prepare(p, programTrue)
	var said, stderr tail
	cmd.Stdout, cmd.Stderr = &said, &stderr
	if err = b.thread.Do(cmd.Start); err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, stderr.text)
	}
	return stages, json.Unmarshal(said.text, &stages)
}

// stage is what one call of a runtime took.
type stage struct {
	What  string  `json:"what"`
	MS    float64 `json:"ms"`
	CPUMS float64 `json:"cpu_ms"`
}

// lifeMain is what main does when this binary is in the place of a shim; the
// arguments are the runtime, its root, the bundle and the container's id.
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

// leadLife calls a runtime as a shim does, and like a shim takes what it leaves
// behind for its own children.
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

// callRuntime gives the container what is this process's error stream.
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

// awaitEnd waits for the container's process: no runtime deletes one that lives.
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

func wait(pid int, status *unix.WaitStatus) error {
	for {
		if _, err := unix.Wait4(pid, status, 0, nil); err != unix.EINTR {
			return err
		}
	}
}

// wholeLife adds the calls up. Its CPU time has the container's first process and
// a keeper in it, which have been reaped by now.
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
