package monitor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"clove.run/clove/cgroups"
	"clove.run/clove/internal/lasting"
)

// spawn starts the monitor of the container in directory and returns when it is
// armed. held is the lock, which the monitor inherits, so that it is never free.
func spawn(directory string, held *os.File) error {
	failures, err := os.OpenFile(filepath.Join(directory, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer failures.Close()
	answers, err := start(directory, failures, held)
	if err != nil {
		return fmt.Errorf("cannot start the container's monitor: %w", err)
	}
	defer answers.Close()
	answer, err := io.ReadAll(answers)
	switch {
	case err != nil:
		return err
	// It was killed, or crashed: an error of its own would have been its answer.
	case len(answer) == 0:
		return fmt.Errorf("the container's monitor ended without an answer; %s says more", failures.Name())
	case string(answer) != armed:
		return errors.New(string(answer))
	}
	return nil
}

// start gives the monitor nothing of the engine's: no stream, directory or variable.
// On v2 it starts in the cgroup of clove's supervisors: in the engine's it would die
// with the engine's service, in the container's it would count and be killed there.
func start(directory string, failures, held *os.File) (answers *os.File, err error) {
	host, err := cgroups.Detect()
	if err != nil {
		return nil, err
	}
	group, err := host.PrepareSupervisors()
	if err != nil {
		return nil, err
	}
	if group != nil {
		defer group.Close()
	}
	command := exec.Command("/proc/self/exe", Argument, directory)
	command.Args[0] = "clove-oci"
	if answers, err = lasting.Start(command, group, failures, held); err != nil {
		return nil, err
	}
	// It outlives this program; the subreaper that reaps the container's process reaps it.
	_ = command.Process.Release() // fails where it was released
	return answers, nil
}
