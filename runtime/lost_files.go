package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clove.run/clove/agent"
)

// A layer or a log without a record is the work of a run that the store has lost. It is moved to
// a directory of its own below lost/, and stays there until root removes it:
//
//	lost/<id>, or <id>-2 where that has one already
//	├── layer.img
//	├── log
//	└── run.json    the layer's description; the log has its own
//
// Removed runs are never found here. Each removal deletes the files before the record, so an
// interrupted one still has a record.

// LostPrefix begins a reference to one of these directories, as the commands take it.
const LostPrefix = "lost/"

const (
	lostLayer   = "layer" + layerSuffix
	lostLog     = "log"
	lostRemoved = ".removed-" // begins the name of a directory that is being removed
)

// isLost reports whether a reference is one of these.
func isLost(reference string) bool { return strings.HasPrefix(reference, LostPrefix) }

func (p Paths) lost() string { return filepath.Join(p.State, "lost") }

// lostPlace makes and returns the directory that takes entry: the run's first one without it.
func (p Paths) lostPlace(id agent.ID, entry string) (string, error) {
	for number := 1; ; number++ {
		dir := filepath.Join(p.lost(), string(id))
		if number > 1 {
			dir += fmt.Sprintf("-%d", number)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil || !exists(filepath.Join(dir, entry)) {
			return dir, err
		}
	}
}

// releaseLayer takes an image that no record accounts for out of the layers: one that no agent
// wrote to is removed, any other is moved to lost/. It returns where that is; empty: it was
// removed, or is gone. The caller holds the claim of the run.
func (p Paths) releaseLayer(id agent.ID) (kept string, err error) {
	image := p.layer(id)
	if untouched(image) || !exists(image) {
		return "", removeLayer(image)
	}
	dir, err := p.lostPlace(id, lostLayer)
	if err != nil {
		return "", err
	}
	// The description first: where this process is killed in between, the next one moves the
	// image to the same directory.
	if err = absentIsFine(os.Rename(described(image), filepath.Join(dir, descriptionFile))); err == nil {
		err = os.Rename(image, filepath.Join(dir, lostLayer))
	}
	if err != nil {
		return "", err
	}
	return p.reference(dir), removeDescriptions(image)
}

// releaseLog does so with a log: one in which nothing was written is removed.
func (p Paths) releaseLog(id agent.ID) (kept string, err error) {
	written, err := hasOutput(p.Log(id))
	if err != nil || !written {
		return "", errors.Join(err, p.RemoveLog(id))
	}
	dir, err := p.lostPlace(id, lostLog)
	if err != nil {
		return "", err
	}
	if err := os.Rename(p.Log(id), filepath.Join(dir, lostLog)); err != nil {
		return "", absentIsFine(err) // another clove was faster
	}
	return p.reference(dir), nil
}

func (p Paths) reference(dir string) string { return LostPrefix + filepath.Base(dir) }

// hasOutput reports whether a log's directory has more in it than its description, the output of
// its supervisor, which is clove's own, and empty files.
func hasOutput(dir string) (found bool, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == descriptionFile || d.Name() == SupervisorOutput {
			return absentIsFine(err)
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 {
			found = true
			return fs.SkipAll
		}
		return absentIsFine(err)
	})
	return found, err
}

// LostRun is the run that a reference lost/ID is about, for a Reading: its id and name are the
// reference, and its owner is root where the owner is unknown.
func (p Paths) LostRun(reference string) (agent.Run, error) {
	name := strings.TrimPrefix(reference, LostPrefix)
	id, number, _ := strings.Cut(name, "-")
	dir := filepath.Join(p.lost(), name)
	if !agent.ID(id).Valid() || strings.Trim(number, "0123456789") != "" || !exists(dir) {
		return agent.Run{}, &agent.Error{Kind: agent.KindNotFound, Message: fmt.Sprintf("there is no %.64q", reference),
			Hint: "sudo clove check lists what is below lost/"}
	}
	run := agent.Run{State: agent.StateEnded, Spec: agent.Spec{ID: agent.ID(LostPrefix + name), Name: LostPrefix + name}}
	if image := filepath.Join(dir, lostLayer); exists(image) {
		run.Layer = image
	}
	if d := readDescription(descriptionOf(dir)); d != nil {
		run.Owner, run.Spec.Files.Workspace = d.Owner, d.Workspace
	}
	return run, nil
}

// descriptionOf is the path of what describes a directory below lost/. That of a log says
// nothing about the owner of a layer beside it.
func descriptionOf(dir string) string {
	if exists(filepath.Join(dir, lostLayer)) {
		return filepath.Join(dir, descriptionFile)
	}
	return filepath.Join(dir, lostLog, descriptionFile)
}

// Lost lists what is below lost/, for people.
func (r *site) Lost() []Problem {
	var found []Problem
	for _, name := range entriesOf(r.paths.lost()) {
		if strings.HasPrefix(name, lostRemoved) {
			continue
		}
		found = append(found, Problem{Kind: ProblemLost, Subject: LostPrefix + name, Message: r.paths.lostText(name), Note: true})
	}
	return found
}

// lostText describes one directory below lost/.
func (p Paths) lostText(name string) string {
	dir := filepath.Join(p.lost(), name)
	var has []string
	for _, entry := range []struct{ file, name string }{{lostLayer, "the layer"}, {lostLog, "the log"}} {
		if exists(filepath.Join(dir, entry.file)) {
			has = append(has, entry.name)
		}
	}
	text := cmp.Or(strings.Join(has, " and "), "what is left")
	if d := readDescription(descriptionOf(dir)); d != nil {
		text += fmt.Sprintf(" of %s, which user %d began at %s", d.Name, d.Owner.UID, d.Begun.Format(time.DateTime))
	} else {
		text += " of an unknown run"
	}
	return text + "; there is no record of it, and `clove gc --lost` removes it"
}

// RemoveLost removes what came to lost/ before a time, and returns what it removed.
func (r *Runtime) RemoveLost(before time.Time) (removed []Problem, err error) {
	var failures []error
	for _, p := range r.Lost() {
		name := strings.TrimPrefix(p.Subject, LostPrefix)
		dir, going := filepath.Join(r.paths.lost(), name), filepath.Join(r.paths.lost(), lostRemoved+name)
		info, err := os.Stat(dir) // the time of its last new entry
		if err == nil && !info.ModTime().Before(before) {
			continue
		}
		// Renamed first: what a killed clove leaves of it is no run's work any more.
		if err == nil {
			err = errors.Join(os.RemoveAll(going), os.Rename(dir, going))
		}
		if err != nil {
			failures = append(failures, absentIsFine(err))
			continue
		}
		removed = append(removed, Problem{Kind: p.Kind, Subject: p.Subject, Message: "removed"})
	}
	return removed, errors.Join(append(failures, r.finishRemovals())...)
}

// finishRemovals removes what RemoveLost has renamed.
func (r *reaper) finishRemovals() error {
	var failures []error
	for _, name := range entriesOf(r.paths.lost()) {
		if strings.HasPrefix(name, lostRemoved) {
			failures = append(failures, os.RemoveAll(filepath.Join(r.paths.lost(), name)))
		}
	}
	return errors.Join(failures...)
}
