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

// spawn starts the keeper of the container in directory and returns when it has
// armed. held is the lock, which goes over to it without a gap.
func spawn(directory string, held *os.File) error {
	failures, err := os.OpenFile(filepath.Join(directory, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer failures.Close()
	hear, err := start(directory, failures, held)
	if err != nil {
		return fmt.Errorf("cannot start the container's keeper: %w", err)
	}
	defer hear.Close()
	word, err := io.ReadAll(hear)
	switch {
	case err != nil:
		return err
	case len(word) == 0:
		return fmt.Errorf("the container's keeper ended without a word; %s says more", failures.Name())
	case string(word) != armed:
		return errors.New(string(word))
	}
	return nil
}

// start gives the keeper nothing of the engine's: no stream, directory or
// variable. On v2 it is born in the cgroup of clove's supervisors, outside of the
// engine's and the container's.
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
	// It outlives this program, and then is buried by whoever buries the container's process.
	_ = command.Process.Release() // fails where it was released
	return answers, nil
}
