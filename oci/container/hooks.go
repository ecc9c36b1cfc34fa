package container

import (
	"github.com/opencontainers/runc/libcontainer/utils"
	"github.com/sirupsen/logrus"

	"clove.run/clove/internal/creates"
)

// Hooks are called at fixed points of a container's life, for rules that libcontainer does
// not know. An Engine without Hooks has no such rules.
type Hooks interface {
	// Created is called when a container's process waits to execute command. An error
	// removes the container.
	Created(c *Container, command []string) error
	// Loaded is called when a container was found again, to restart what has died. Its
	// error is only logged.
	Loaded(*Container) error
	// Starting is called before the container's process executes. After an error it
	// does not execute.
	Starting(*Container) error
	// Ended is called when the container's process has ended, before its cgroup and its
	// directory are removed. After an error they stay for another try.
	Ended(*Container) error
}

// Kept is what state.json keeps of a container's first process.
type Kept struct {
	ID, Directory string            // Directory is absolute, below the engine's root
	Pid           int               // on the host
	StartTime     uint64            // proc_pid_stat(5), because pids are reused
	Cgroups       map[string]string // controller, "" for the v2 tree, to directory
}

// Kept returns what state.json has of the first process. Before that process exists, Pid is
// 0.
func (c *Container) Kept() (Kept, error) {
	state, err := c.lib.State()
	if err != nil {
		return Kept{}, err
	}
	return Kept{ID: state.ID, Directory: c.Directory(), Pid: state.InitProcessPid,
		StartTime: state.InitProcessStartTime, Cgroups: state.CgroupPaths}, nil
}

// created calls Hooks.Created. A process that a hook starts must not inherit this program's
// descriptors: an engine waits until every copy of its streams is closed, so a long-lived
// monitor would keep it waiting.
func (c *Container) created(command []string) error {
	if c.engine.Hooks == nil {
		return nil
	}
	if err := utils.CloseExecFrom(firstExtra); err != nil {
		return err
	}
	return c.engine.Hooks.Created(c, command)
}

// loaded logs an error and goes on: it must always be possible to kill and remove a
// container. Hooks.Starting prevents the start of one whose rules are not enforced.
func (c *Container) loaded() {
	if c.engine.Hooks == nil {
		return
	}
	if err := c.engine.Hooks.Loaded(c); err != nil {
		logrus.Warn(err)
	}
}

// release lets the waiting process execute, after Hooks.Starting. libcontainer opens the
// fifo that the process waits at.
func (c *Container) release() error {
	if c.engine.Hooks != nil {
		if err := c.engine.Hooks.Starting(c); err != nil {
			return err
		}
	}
	return c.lib.Exec()
}

// remove removes the cgroup and the directory of a container whose process is gone.
// Hooks.Ended comes first: it reads the cgroup's counters, and its files are in the
// directory.
func (c *Container) remove() error {
	// Without a process, Hooks.Created was not called.
	if c.engine.Hooks != nil && !c.unborn {
		if err := c.engine.Hooks.Ended(c); err != nil {
			return err
		}
	}
	if err := c.lib.Destroy(); err != nil {
		return err
	}
	return c.noted()
}

// noted ends the note of the container's making: from here on the engine can see the container,
// or it is gone.
func (c *Container) noted() error {
	err := creates.End(c.engine.Register, c.Directory())
	if c.note != nil {
		c.note.Close()
	}
	return err
}
