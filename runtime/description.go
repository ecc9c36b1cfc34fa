package runtime

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/rootfs"
)

// description is kept beside a layer and in the directory of a log. It says whose they are to a
// clove whose store has no record of the run: the store was damaged, or is an older copy. It is
// in directories that only root can enter, so its owner can be trusted.
type description struct {
	Version   int         `json:"version"`
	ID        agent.ID    `json:"id"`
	Name      string      `json:"name"`
	Owner     agent.Owner `json:"owner"`
	Workspace string      `json:"workspace,omitempty"` // the host's directory; empty: the run had none
	// HostID is the host id of id 0 inside, and IDs how many ids follow. Absent for a layer of
	// an earlier version of clove, which has them in itself.
	HostID uint32    `json:"host_id,omitempty"`
	IDs    uint32    `json:"ids,omitempty"`
	Begun  time.Time `json:"begun"` // this start, or the first one where the layer was kept
}

const (
	descriptionVersion = 1
	descriptionFile    = "run.json" // in the directory of a log, and below lost/

	// A layer's description has another name until the agent may write: an image with that one
	// alone has nothing of an agent's in it.
	describedSuffix = ".json"
	startingSuffix  = ".starting"
)

// described is the path of the description beside the image of a layer.
func described(image string) string { return strings.TrimSuffix(image, layerSuffix) + describedSuffix }

// starting is its path while no agent has executed on the layer.
func starting(image string) string { return strings.TrimSuffix(image, layerSuffix) + startingSuffix }

// describe is the description of a run that has a lease, or had one.
func describe(run agent.Run) description {
	d := description{Version: descriptionVersion, ID: run.Spec.ID, Name: run.Spec.Name, Owner: run.Owner, Workspace: run.Spec.Files.Workspace,
		Begun: run.Started.UTC()}
	if run.Started.IsZero() {
		d.Begun = time.Now().UTC()
	}
	if run.Lease != nil {
		d.HostID, d.IDs = run.Lease.HostID(), agent.IDsPerAgent
	}
	return d
}

// write does not wait for the disk: a layer does not, either (rootfs.Tree.Sync).
func (d description) write(path string) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// readDescription returns nil where there is none that can be read: then the owner is unknown.
func readDescription(path string) *description {
	text, err := os.ReadFile(path)
	var d description
	if err != nil || json.Unmarshal(text, &d) != nil || d.Version != descriptionVersion {
		return nil
	}
	return &d
}

// untouched reports whether no agent has executed on the layer, so that nothing of its is lost
// with it. A layer without any description may be of an earlier version of clove.
func untouched(image string) bool { return exists(starting(image)) && !exists(described(image)) }

// describeLog writes the description into the directory of the run's log, if there is one that
// has none yet.
func (p Paths) describeLog(run agent.Run) error {
	path := filepath.Join(p.Log(run.Spec.ID), descriptionFile)
	if readDescription(path) != nil {
		return nil
	}
	return absentIsFine(describe(run).write(path))
}

// Renamed writes the new name of a run that does not execute into its descriptions.
func (p Paths) Renamed(run agent.Run) error {
	var failures []error
	for _, path := range []string{described(p.layer(run.Spec.ID)), filepath.Join(p.Log(run.Spec.ID), descriptionFile)} {
		d := readDescription(path)
		if d == nil {
			continue
		}
		d.Name = run.Spec.Name
		text, err := json.Marshal(d)
		failures = append(failures, err, atomicfile.Write(path, 0o600, append(text, '\n')))
	}
	return errors.Join(failures...)
}

// removeLayer removes an image and then what describes it. What is absent is no error.
func removeLayer(image string) error {
	if err := rootfs.RemoveLayer(image); err != nil {
		return err
	}
	return removeDescriptions(image)
}

func removeDescriptions(image string) error {
	return errors.Join(absentIsFine(os.Remove(described(image))), absentIsFine(os.Remove(starting(image))))
}

func absentIsFine(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
