package container

import (
	"github.com/opencontainers/runc/libcontainer/utils"
	"github.com/sirupsen/logrus"
)

// Warden holds containers to what libcontainer knows nothing of, from outside
// and between the calls of this package. An Engine without one has such rules
// for none of its containers.
type Warden interface {
	// Created takes a container whose process waits to become command; an error ends
	// the container.
	Created(c *Container, command []string) error
	// Loaded looks whether a container that was found again is still held. Its error
	// is only told.
	Loaded(*Container) error
	// Starting returns when the container is held; its process executes next, and
	// after an error it does not.
	Starting(*Container) error
	// Ended returns when nobody needs the cgroup and the directory of a container
	// any more whose process is gone: they are removed next, and after an error they
	// stay for another try.
	Ended(*Container) error
}

// Kept is what state.json keeps of a container's first process.
type Kept struct {
	ID, Directory string            // Directory is absolute, below the engine's root
	Pid           int               // on the host
	StartTime     uint64            // proc_pid_stat(5): numbers come again
	Cgroups       map[string]string // controller, "" for the v2 tree, to directory
}

// Kept is that of a container whose process has been made; before, Pid is 0.
func (c *Container) Kept() (Kept, error) {
	state, err := c.lib.State()
	if err != nil {
		return Kept{}, err
	}
	return Kept{ID: state.ID, Directory: c.Directory(), Pid: state.InitProcessPid,
		StartTime: state.InitProcessStartTime, Cgroups: state.CgroupPaths}, nil
}

// created hands a container to the warden. What a warden starts must not have
// this program's descriptors: the engine waits for the end of its streams.
func (c *Container) created(command []string) error {
	if c.engine.Warden == nil {
		return nil
	}
	if err := utils.CloseExecFrom(firstExtra); err != nil {
		return err
	}
	return c.engine.Warden.Created(c, command)
}

// loaded complains only: a container that nobody holds must still be one that
// can be killed and removed. It cannot be started.
func (c *Container) loaded() {
	if c.engine.Warden == nil {
		return
	}
	if err := c.engine.Warden.Loaded(c); err != nil {
		logrus.Warn(err)
	}
}

// release lets the process that waits execute, once it is held.
func (c *Container) release() error {
	if c.engine.Warden != nil {
		if err := c.engine.Warden.Starting(c); err != nil {
			return err
		}
	}
	return c.lib.Exec()
}

// remove takes away what is left of a container whose process is gone.
func (c *Container) remove() error {
	// A warden knows nothing of a container whose process could not be made.
	if c.engine.Warden != nil && !c.unborn {
		if err := c.engine.Warden.Ended(c); err != nil {
			return err
		}
	}
	return c.lib.Destroy()
}
