package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	cgroupmanager "github.com/opencontainers/cgroups/manager"
)

// cgroupFile is in a container's directory from before its cgroup is made. libcontainer writes
// its own file, state.json, when the first process exists: of a create that was killed in
// between, nothing else says where the cgroup is. It goes with the directory.
const cgroupFile = "cgroup.json"

// future is where a container's cgroup will be.
type future struct {
	Cgroup cgroups.Cgroup    `json:"cgroup"` // its name and place, without limits
	Paths  map[string]string `json:"paths"`  // controller, "" for the v2 tree, to directory
}

// announce writes cgroupFile. It makes no cgroup.
func announce(directory string, cgroup *cgroups.Cgroup) error {
	m, err := cgroupmanager.New(cgroup)
	if err != nil {
		return fmt.Errorf("cannot find the container's cgroup: %w", err)
	}
	f := future{Cgroup: *cgroup, Paths: m.GetPaths()}
	f.Cgroup.Resources = nil
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, cgroupFile), text, 0o600)
}

// RemoveUnfinished removes the cgroup and the directory of a create that was killed before it
// wrote state.json, which Load does not find. A cgroup with processes stays, with the
// directory, and is an error. The caller must have passed id to Load first: Load rejects ids
// that lead out of the root.
func (e Engine) RemoveUnfinished(id string) error {
	directory := filepath.Join(e.Root, id)
	text, err := os.ReadFile(filepath.Join(directory, cgroupFile))
	if errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(directory) // it was killed before that
	}
	if err != nil {
		return err
	}
	var f future
	// Half a file: it was killed while it wrote, and made no cgroup.
	if json.Unmarshal(text, &f) == nil {
		f.Cgroup.Resources = &cgroups.Resources{}
		m, err := cgroupmanager.NewWithPaths(&f.Cgroup, f.Paths)
		if err == nil {
			err = m.Destroy()
		}
		if err != nil {
			return fmt.Errorf("cannot remove the cgroup of %s: %w", id, err)
		}
	}
	return os.RemoveAll(directory)
}
