package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/utils"
)

// State is a container's state as the runtime specification defines it, with runc's
// additions. The order of the fields is runc's, so that the JSON is the same.
type State struct {
	OCIVersion  string            `json:"ociVersion"` // of the specification, as this runtime knows it
	ID          string            `json:"id"`
	Pid         int               `json:"pid"`    // on the host; 0: stopped
	Status      string            `json:"status"` // created, running, paused or stopped
	Bundle      string            `json:"bundle"` // absolute, as is Rootfs
	Rootfs      string            `json:"rootfs"`
	Created     time.Time         `json:"created"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Owner       string            `json:"owner"` // of the directory; only List sets it
}

// State is the container's state now: what the kernel says of its process, and the rest
// from state.json. A process counts as the container's only with the start time that is
// stored there.
func (c *Container) State() (State, error) {
	status, err := c.lib.Status()
	if err != nil {
		return State{}, err
	}
	kept, err := c.lib.State()
	if err != nil {
		return State{}, err
	}
	pid := kept.InitProcessPid
	if status == libcontainer.Stopped {
		pid = 0
	}
	bundle, annotations := utils.Annotations(kept.Config.Labels)
	return State{
		OCIVersion: kept.Config.Version, ID: kept.ID, Pid: pid, Status: status.String(),
		Bundle: bundle, Rootfs: kept.Config.Rootfs, Created: kept.Created, Annotations: annotations,
	}, nil
}

// execFifo is libcontainer's file in the container's directory at which the first process
// waits. It is removed when the process executes.
const execFifo = "exec.fifo"

// Waits reports whether the first process has not executed yet. State cannot tell for a
// paused container: its status is then paused, started or not.
func (c *Container) Waits() bool {
	_, err := os.Lstat(filepath.Join(c.Directory(), execFifo))
	return err == nil
}

// List is the state of every container below the root. One that cannot be read is reported
// to warnings and does not hide the others. The error is fs.ErrNotExist if the root does
// not exist.
func (e Engine) List(warnings io.Writer) ([]State, error) {
	entries, err := os.ReadDir(e.Root)
	if err != nil {
		return nil, err
	}
	var states []State
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		state, err := e.stateOf(entry.Name())
		if err != nil {
			fmt.Fprintf(warnings, "load container %s: %v\n", entry.Name(), err)
			continue
		}
		state.Owner = ownerOf(info)
		states = append(states, state)
	}
	return states, nil
}

// stateOf loads the container as every command does, so `list` also restarts monitors that
// were killed.
func (e Engine) stateOf(id string) (State, error) {
	c, err := e.Load(id)
	if err != nil {
		return State{}, err
	}
	return c.State()
}

// ownerOf is the name of the directory's owner, or # and the id of a user without a name,
// as runc shows it.
func ownerOf(info os.FileInfo) string {
	id := strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10)
	if known, err := user.LookupId(id); err == nil {
		return known.Username
	}
	return "#" + id
}
