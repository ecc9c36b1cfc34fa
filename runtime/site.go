package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/store"
)

// Paths are clove's two directories on the host.
type Paths struct {
	State string // survives a reboot: the store and the kept layers
	Run   string // does not have to: one directory for each live run
}

// DefaultPaths follow the file system hierarchy standard.
var DefaultPaths = Paths{State: "/var/lib/clove", Run: "/run/clove"}

// storeTimeout bounds the wait for another clove's transaction. Each lasts
// milliseconds; two hundred at once are served within a second or two.
const storeTimeout = 30 * time.Second

// site is an installation on this host. Its methods read what the store, the directories and the
// kernel have of its runs, and change nothing.
type site struct {
	paths Paths
	owner string // which installation this is, in the names of its cgroups
}

// cgroupName is the name of an agent's cgroup directories.
func (r *site) cgroupName(id agent.ID) string { return string(id) + "-" + r.owner }

// withStore runs one short use of the store.
func (r *site) withStore(use func(*store.Store) error) error { return r.paths.withStore(use) }

// Get returns the run with this id, unique id prefix or name.
func (r *site) Get(ref string) (run agent.Run, err error) {
	err = r.withStore(func(s *store.Store) error { run, err = s.Get(ref); return err })
	return run, err
}

// layerSuffix follows the run's id in the name of its layer's image.
const layerSuffix = ".img"

// Journals is where processes are noted that serve models and outlast cloved.
func (p Paths) Journals() string { return filepath.Join(p.Run, journals) }

const journals = "models"

func (p Paths) identity() string { return filepath.Join(p.State, "installation") }
func (p Paths) database() string { return filepath.Join(p.State, "clove.db") }

// Kernel is the file for what agents share. While cloved lives, no other process opens it.
func (p Paths) Kernel() string { return filepath.Join(p.State, "kernel.db") }

func (p Paths) layers() string                  { return filepath.Join(p.State, "layers") }
func (p Paths) templates() string               { return filepath.Join(p.State, "templates") }
func (p Paths) layer(id agent.ID) string        { return filepath.Join(p.layers(), string(id)+layerSuffix) }
func (p Paths) logs() string                    { return filepath.Join(p.State, "logs") }
func (p Paths) runDirectory(id agent.ID) string { return filepath.Join(p.Run, string(id)) }

// services is the directory that the agent sees at rootfs.ServicesDir.
func (p Paths) services(id agent.ID) string { return filepath.Join(p.runDirectory(id), "services") }

// Log is the directory of what a detached run wrote.
func (p Paths) Log(id agent.ID) string { return filepath.Join(p.logs(), string(id)) }

// ModelLog is the directory of what a run's calls of models said, where it asks for that. It is
// a part of Log, and removed with it.
func (p Paths) ModelLog(id agent.ID) string { return filepath.Join(p.Log(id), "models") }

// SupervisorOutput is the file in it with what the supervisor printed if it crashed.
const SupervisorOutput = "supervisor"

// RemoveLog removes it, also while a supervisor that does not know yet that its
// run is gone makes it again; Refuse removes what that one leaves.
func (p Paths) RemoveLog(id agent.ID) (err error) {
	for range 100 { // more often than it is made
		if err = os.RemoveAll(p.Log(id)); !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
	}
	return agent.Failed("log", err)
}

// runMode lets the sandbox's root, which has no rights on the host, pass through
// to the root that it pivots into. Its contents are readable by root alone.
const runMode = 0o711

// withStore runs one short use of the store. Decision 8 (docs/decisions) says why each use
// opens the file again.
func (p Paths) withStore(use func(*store.Store) error) error {
	s, err := store.Open(p.database(), storeTimeout)
	if err != nil {
		return err
	}
	err = use(s)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

// detect asks what cgroups this host has.
func detect() (*cgroups.Host, error) {
	h, err := cgroups.Detect()
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindUnenforceable, Step: "cgroups", Message: "no limits can hold on this host",
			Hint: "mount cgroup2 at /sys/fs/cgroup; `clove doctor` says more", Err: err}
	}
	return h, nil
}

// Problem is one thing that should not be there, or that gc removed.
type Problem struct {
	Kind    string `json:"kind"` // one of Problem*
	Subject string `json:"subject"`
	Message string `json:"message"`
	// Note is set where nothing is wrong: the installation has it, and people should know.
	Note bool `json:"note,omitempty"`
}

// The kinds of problems.
const (
	ProblemStore   = "store"         // the store contradicts itself
	ProblemRun     = "run"           // live in the store, without a supervisor
	ProblemDir     = "run-directory" // belongs to no run
	ProblemCgroup  = "cgroup"        // belongs to no live run
	ProblemCommand = "command"       // of --on-warn or --on-end, whose supervisor has ended
	ProblemLayer   = "layer"         // belongs to no run
	ProblemLog     = "log"           // belongs to no run
	ProblemLost    = "lost"          // a directory below lost/; a note
	ProblemSpool   = "spool"         // files for a run that has started; of no run, a note
	// ProblemCreate is the cgroup of an OCI container whose create was killed. Its directory is the
	// engine's, so clove-oci removes both.
	ProblemCreate  = "create"
	ProblemMount   = "mount"   // below clove's directories, in this namespace
	ProblemProcess = "process" // of a start that was given up, and hangs in the kernel
	ProblemGate    = "gate"    // a process with the id of a gate that outlived its supervisor
	// ProblemTemplate is a template whose maker was killed; gc also removes
	// those that are long unused, which are no problem.
	ProblemTemplate = "template"
)

// entriesOf lists a directory; one that is not there is empty.
func entriesOf(dir string) []string {
	entries, _ := os.ReadDir(dir)
	list := make([]string, 0, len(entries))
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// reaper removes what dead runs have left.
type reaper struct {
	site
	init string // path of the clove-init binary
}
