package runtime

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/store"
)

// installation is what the state directory says of itself. Installations share
// the host's cgroup tree, and must not take each other's agents for orphans. The
// path of the state directory does not distinguish them: in another mount namespace it
// leads to another directory.
type installation struct {
	ID  string    `json:"id"`  // in the names of its cgroups: installationDigits hexadecimal digits
	Run directory `json:"run"` // the one in which its live runs are
}

// installationDigits is the length that the pattern of cgroup names holds.
const installationDigits = 8

// directory identifies a directory by the kernel's numbers; its path is for people. A path
// is not enough: after a removal, and in another mount namespace, the same path leads to
// another directory, and one directory can have several paths.
type directory struct {
	Path   string `json:"path"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

func (d directory) is(other directory) bool {
	return d.Device == other.Device && d.Inode == other.Inode
}

// identify follows links, so that the path shown to people is where the directory really
// is.
func identify(path string) (directory, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	var about unix.Stat_t
	if err := unix.Stat(path, &about); err != nil {
		return directory{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return directory{Path: path, Device: about.Dev, Inode: about.Ino}, nil
}

// installation reads which installation this is, and decides it at the first use
// of the state directory.
func (p Paths) installation() (installation, error) {
	found, err := p.readInstallation()
	if !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	err = descriptor.Exclusively(p.State, func() (err error) {
		// Read again under the lock: another process may have made it since.
		if found, err = p.readInstallation(); errors.Is(err, fs.ErrNotExist) {
			found, err = p.newInstallation()
		}
		return err
	})
	return found, err
}

// readInstallation rejects a damaged file and does not replace it: with a new id, the
// cgroups of live agents would have no owner.
func (p Paths) readInstallation() (found installation, err error) {
	text, err := os.ReadFile(p.identity())
	if err != nil {
		return found, err
	}
	if err = json.Unmarshal(text, &found); err == nil {
		var id []byte
		if id, err = hex.DecodeString(found.ID); err == nil && len(id) != installationDigits/2 {
			err = fmt.Errorf("the id %q has not %d digits", found.ID, installationDigits)
		}
	}
	if err != nil {
		return found, &agent.Error{Step: "installation", Message: p.identity() + " is damaged",
			Hint: "end all agents and cloved, and remove that file: a new one is made", Err: err}
	}
	return found, nil
}

// newInstallation makes a random id. If runs are live already, it takes the id in the names
// of their cgroups instead: an older clove kept no file, or the file was removed, and with
// another id these cgroups would have no owner. It is used under the state directory's
// lock.
func (p Paths) newInstallation() (made installation, err error) {
	var random [installationDigits / 2]byte
	rand.Read(random[:]) // never fails, see crypto/rand
	made.ID = hex.EncodeToString(random[:])
	live, err := p.live()
	if err != nil {
		return made, err
	}
	for _, run := range live {
		// Any of them will do: all runs of this store belong to one installation.
		if id := ownerOf(run); id != "" {
			made.ID = id
			break
		}
	}
	if len(p.elsewhere(live)) == 0 { // else it stays no directory at all, which bind refuses
		if made.Run, err = identify(p.Run); err != nil {
			return made, err
		}
	}
	return made, p.write(made)
}

// ownerOf is the id of the installation in the names of a run's cgroups.
func ownerOf(run agent.Run) string {
	for _, path := range run.Lease.Cgroups {
		if id, owner, _ := strings.Cut(filepath.Base(path), "-"); id == string(run.Spec.ID) {
			return owner
		}
	}
	return ""
}

// write replaces the file as a whole.
func (p Paths) write(i installation) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return atomicfile.Write(p.identity(), 0o600, append(text, '\n'))
}

// live are the runs that hold a lease; none where there is no store yet.
func (p Paths) live() (runs []agent.Run, err error) {
	if !exists(p.database()) {
		return nil, nil
	}
	err = p.withStore(func(s *store.Store) error {
		runs, err = s.Live(func(agent.ID) bool { return true })
		return err
	})
	return runs, err
}

// elsewhere returns the live runs whose supervisor lives and holds no run directory in
// p.Run.
func (p Paths) elsewhere(live []agent.Run) (others []agent.Run) {
	for _, run := range live {
		if here, err := lives(p.runDirectory(run.Spec.ID)); (err != nil || !here) && p.survives(run) {
			others = append(others, run)
		}
	}
	return others
}

// bind makes p.Run the run directory of this installation, unless another
// one is in use: the runs there could not be seen from here, and would count as dead.
// It is used under the state directory's lock.
func (p Paths) bind() error {
	noted, here, err := p.binding()
	if err != nil || noted.Run.is(here) {
		return err
	}
	if err := p.unused(noted, here); err != nil {
		return err
	}
	noted.Run = here
	return p.write(noted)
}

// unused is an error while a process uses the run directory that was noted.
func (p Paths) unused(noted installation, here directory) error {
	used, err := p.signs().any()
	if err != nil {
		return err
	}
	if !used { // supervisors of a clove that gave no signs
		live, err := p.live()
		if err != nil {
			return err
		}
		used = len(p.elsewhere(live)) > 0
	}
	if used {
		return otherDirectory(p.State, noted.Run.Path, here.Path)
	}
	return nil
}

// binding is the run directory that was noted, and the one that is used here.
func (p Paths) binding() (noted installation, here directory, err error) {
	if noted, err = p.readInstallation(); errors.Is(err, fs.ErrNotExist) {
		noted, err = p.newInstallation() // it was removed
	}
	if err == nil {
		here, err = identify(p.Run)
	}
	return noted, here, err
}

func otherDirectory(state, noted, here string) error {
	message := fmt.Sprintf("live runs of %s use the run directory %s, not %s", state, noted, here)
	if noted == here || noted == "" {
		message = fmt.Sprintf("live runs of %s use another directory than this %s: it was removed, or this is another mount namespace", state, here)
	}
	return &agent.Error{Kind: agent.KindConflict, Step: "run directory", Message: message,
		Hint: "one state directory has one run directory: name both (--root, --run-dir) or neither; after a loss `clove check` lists " +
			"the agents that cannot be reached and `clove gc` ends them; then restart cloved, if it runs"}
}

// displaced reports that another run directory than this one is in use.
func (r *site) displaced() []Problem {
	var where string
	err := descriptor.Exclusively(r.paths.State, func() error {
		noted, here, err := r.paths.binding()
		if err != nil || noted.Run.is(here) {
			return err
		}
		where = noted.Run.Path
		return r.paths.unused(noted, here)
	})
	if err == nil {
		return nil
	}
	return []Problem{{Kind: ProblemDir, Subject: where, Message: agent.FailureOf(err).Message}}
}
