package keeper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"clove.run/clove/cgroups"
)

// spawn starts the keeper of the container in directory and returns when it has
// armed. held is the lock, which goes over to it without a gap.
func spawn(directory string, held *os.File) error {
	failures, err := os.OpenFile(filepath.Join(directory, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer failures.Close()
	hear, ready, err := os.Pipe()
	if err != nil {
		return err
	}
	defer hear.Close()
	err = start(directory, failures, held, ready)
	ready.Close()
	if err != nil {
		return fmt.Errorf("cannot start the container's keeper: %w", err)
	}
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

func start(directory string, failures *os.File, files ...*os.File) error {
	command, group, err := command(directory)
	if err != nil {
		return err
	}
	if group != nil {
		defer group.Close()
	}
	command.Stderr = failures
	command.ExtraFiles = files // in the order of lockFD and readyFD
	if err := command.Start(); err != nil {
		return err
	}
	// It outlives this program, and then is buried by whoever buries the container's process.
	return command.Process.Release()
}

// command gives the keeper nothing of the engine's: no stream, directory or
// variable. On v2 it is born in the cgroup of clove's supervisors, outside of the
// engine's and the container's; group is that, for the caller to close.
func command(directory string) (command *exec.Cmd, group *os.File, err error) {
	host, err := cgroups.Detect()
	if err == nil {
		group, err = host.PrepareSupervisors()
	}
	if err != nil {
		return nil, nil, err
	}
	command = exec.Command("/proc/self/exe", Argument, directory)
	command.Args[0] = "clove-oci"
	command.Dir = "/"
	// As for the supervisors: one processor is enough, and Go keeps some 200 KiB for each further one.
	command.Env = []string{"GOGC=25", "GOMAXPROCS=1"}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if group != nil {
		command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	return command, group, nil
}
