package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress/host"
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

// Runtime launches agents and answers for those that it launched. It holds
// nothing between calls, so any number of them may serve the same Paths.
type Runtime struct {
	paths Paths
	init  string // path of the clove-init binary
	owner string // which installation this is, in the names of its cgroups
	// failAt makes the named launch step fail; tests sweep it over all steps.
	failAt func(step string) error
}

func (r *Runtime) fault(step string) error {
	if r.failAt == nil {
		return nil
	}
	return r.failAt(step)
}

// Open prepares the directories. It needs root: a KindPrivilege error says so.
func Open(paths Paths) (*Runtime, error) {
	// Only the id is checked here. Which of root's capabilities are missing is said by the
	// probes.
	if os.Geteuid() != 0 {
		return nil, &agent.Error{Kind: agent.KindPrivilege, Message: "clove needs root to make namespaces and cgroups",
			Hint: "run it with sudo; the agent itself never runs as root"}
	}
	for dir, mode := range map[string]os.FileMode{paths.layers(): 0o700, paths.templates(): 0o700, paths.Run: runMode} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return nil, &agent.Error{Step: "directories", Message: "cannot make " + dir,
				Hint: "name others with --root and --run-dir", Err: err}
		}
	}
	executable, err := findInit()
	if err != nil {
		return nil, err
	}
	this, err := paths.installation()
	if err != nil {
		return nil, agent.Failed("installation", err)
	}
	return &Runtime{paths: paths, init: executable, owner: this.ID}, nil
}

// cgroupName is the name of an agent's cgroup directories.
func (r *Runtime) cgroupName(id agent.ID) string { return string(id) + "-" + r.owner }

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
// run is gone makes it anew; Refuse removes what that one leaves.
func (p Paths) RemoveLog(id agent.ID) (err error) {
	for range 100 { // more than anybody makes it
		if err = os.RemoveAll(p.Log(id)); !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
	}
	return agent.Failed("log", err)
}

// runMode lets the sandbox's root, which has no rights on the host, pass through
// to the root that it pivots into. What lies there is readable by root alone.
const runMode = 0o711

// findInit looks for clove-init beside clove itself, then where packages put it.
func findInit() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", agent.Failed("find clove-init", err)
	}
	for _, path := range []string{filepath.Join(filepath.Dir(self), "clove-init"), "/usr/libexec/clove/clove-init"} {
		if isProgram(path) {
			return path, nil
		}
	}
	return "", &agent.Error{Kind: agent.KindNotFound, Step: "find clove-init",
		Message: "clove-init is not beside " + self, Hint: "build both with `make build`, or install both in one directory"}
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Programs is the directory of the programs that clove starts.
func Programs() (string, error) {
	executable, err := findInit()
	return filepath.Dir(executable), err
}

// besideInit is another of clove's programs; they are installed together.
func besideInit(init, name string) string { return filepath.Join(filepath.Dir(init), name) }

// Guard is host.Guard with the gate that is installed beside clove-init.
func (r *Runtime) Guard(ctx context.Context, order agent.Guard, held func()) error {
	return host.Guard(ctx, besideInit(r.init, host.Program), order, held)
}

// withStore runs one short use of the store. Decision 8 (docs/decisions) says why each use
// opens the file anew.
func (r *Runtime) withStore(use func(*store.Store) error) error { return r.paths.withStore(use) }

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

// List returns every run that is known, newest first.
func (r *Runtime) List() (runs []agent.Run, err error) {
	err = r.withStore(func(s *store.Store) error { runs, err = s.List(); return err })
	return runs, err
}

// Get returns the run with this id, unique id prefix or name.
func (r *Runtime) Get(ref string) (run agent.Run, err error) {
	err = r.withStore(func(s *store.Store) error { run, err = s.Get(ref); return err })
	return run, err
}

// SupervisorCgroup opens the cgroup in which the supervisors of detached agents
// live, apart from their starter's: a restart of cloved must not end them. It is nil on
// hosts that have none for them.
func SupervisorCgroup() (*os.File, error) {
	h, err := detect()
	if err != nil {
		return nil, err
	}
	group, err := h.PrepareSupervisors()
	return group, agent.Failed("cgroup of supervisors", err)
}

// Backup writes a sound copy of the store to a file that does not exist yet.
// The layers of ended runs are not in it.
func (r *Runtime) Backup(to string) error {
	return r.withStore(func(s *store.Store) error { return s.Backup(to) })
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
