package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	cgroupmanager "github.com/opencontainers/cgroups/manager"

	"clove.run/clove/internal/creates"
)

// begin notes where the container's cgroup will be. It makes none. libcontainer writes its own
// file, state.json, when the first process exists: of a create that was killed in between,
// nothing else says where the cgroup is.
func (e Engine) begin(directory string, cgroup *cgroups.Cgroup) (held *os.File, err error) {
	m, err := cgroupmanager.New(cgroup)
	if err != nil {
		return nil, fmt.Errorf("cannot find the container's cgroup: %w", err)
	}
	place := *cgroup
	place.Resources = nil
	text, err := json.Marshal(place)
	if err != nil {
		return nil, err
	}
	return creates.Begin(e.Register, creates.Note{Directory: directory, Cgroup: text, Paths: m.GetPaths()})
}

// RemoveUnfinished removes the cgroup and the directory of a create that was killed before it
// wrote state.json, which Load does not find. A cgroup with processes stays, with the
// directory, and is an error. The caller must have passed id to Load first: Load rejects ids
// that lead out of the root.
func (e Engine) RemoveUnfinished(id string) error {
	directory := filepath.Join(e.Root, id)
	n, err := creates.Find(e.Register, directory)
	if errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(directory) // it was killed before it made a cgroup
	}
	if err == nil {
		err = destroy(n)
	}
	if err != nil {
		return fmt.Errorf("cannot remove the cgroup of %s: %w", id, err)
	}
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	return creates.End(e.Register, directory)
}

// destroy removes the cgroup of a note.
func destroy(n creates.Note) error {
	place := cgroups.Cgroup{}
	if err := json.Unmarshal(n.Cgroup, &place); err != nil {
		return err
	}
	place.Resources = &cgroups.Resources{}
	m, err := cgroupmanager.NewWithPaths(&place, n.Paths)
	if err != nil {
		return err
	}
	return m.Destroy()
}
