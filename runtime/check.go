package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress/host"
	"clove.run/clove/rootfs"
	"clove.run/clove/store"
)

// Problem is one thing that should not be there, or that gc removed.
type Problem struct {
	Kind    string `json:"kind"` // a Problem* word
	Subject string `json:"subject"`
	Message string `json:"message"`
}

// The kinds of problems.
const (
	ProblemStore   = "store"         // the store contradicts itself
	ProblemRun     = "run"           // live in the store, supervised by nobody
	ProblemDir     = "run-directory" // belongs to no run
	ProblemCgroup  = "cgroup"        // belongs to no live run
	ProblemLayer   = "layer"         // belongs to no run
	ProblemLog     = "log"           // belongs to no run
	ProblemMount   = "mount"         // below clove's directories, in this namespace
	ProblemProcess = "process"       // of a start that was given up, and hangs in the kernel
	ProblemGate    = "gate"          // a process with the id of a gate that outlived its supervisor
	// ProblemTemplate is a template whose maker was killed; gc also removes
	// those that are long unused, which are no problem.
	ProblemTemplate = "template"
)

// Check compares the store with processes, cgroups, mounts and directories.
// It changes nothing.
func (r *Runtime) Check() ([]Problem, error) {
	complaints, err := r.audit()
	if err != nil {
		return nil, err
	}
	view, err := r.look()
	if err == nil && len(view.orphans())+len(view.lost)+len(view.stuck) > 0 {
		err = r.lookAgain(&view)
	}
	if err != nil {
		return nil, err
	}
	problems := append(complaints, r.displaced()...)
	for _, run := range view.lost {
		problems = append(problems, lostRun(run))
	}
	for _, run := range view.dead {
		problems = append(problems, Problem{ProblemRun, string(run.Spec.ID), run.Spec.Name + " is " + string(run.State) + ", but its supervisor is gone"})
	}
	abandoned, err := rootfs.AbandonedTemplates(r.paths.State)
	return slices.Concat(problems, view.stuck, view.orphans(), view.mounts, templates(abandoned, templateAbandoned)),
		agent.Failed("templates", err)
}

const (
	templateAbandoned = "whoever made this template was killed"
	templateUnused    = "no run has used this template for a month"
)

func templates(names []string, message string) []Problem {
	var problems []Problem
	for _, name := range names {
		problems = append(problems, Problem{ProblemTemplate, name, message})
	}
	return problems
}

// GC removes what Check finds, apart from contradictions inside the store, and
// templates that no run uses. It ends the agents that nobody can reach any more,
// and touches nothing that clove did not make.
func (r *Runtime) GC() ([]Problem, error) {
	view, err := r.look()
	if err == nil && len(view.lost) > 0 {
		err = r.lookAgain(&view)
	}
	if err != nil {
		return nil, err
	}
	failure := endLost(view.lost)
	removed, err := r.Clean()
	return removed, errors.Join(failure, err)
}

// Clean is GC for who was not told to end anything that lives.
func (r *Runtime) Clean() ([]Problem, error) {
	view, err := r.look()
	if err != nil {
		return nil, err
	}
	removed, err := r.bury(view.dead)
	failures := []error{err, errStuck(view.stuck)}
	for _, p := range view.orphans() {
		if err := r.sweep(p, view.cgroups); err != nil {
			failures = append(failures, err)
			continue
		}
		removed = append(removed, p)
	}
	abandoned, unused, err := rootfs.SweepTemplates(r.paths.State, time.Now())
	removed = slices.Concat(removed, templates(abandoned, templateAbandoned), templates(unused, templateUnused))
	return removed, errors.Join(append(failures, err)...)
}

// sweep removes one orphan.
func (r *Runtime) sweep(p Problem, h *cgroups.Host) error {
	switch p.Kind {
	case ProblemCgroup:
		return r.whileNobodys(agent.ID(p.Subject), func(agent.Run) error { return removeCgroups(h.Place(r.cgroupName(agent.ID(p.Subject))).Paths) })
	case ProblemDir:
		return r.whileNobodys(agent.ID(p.Subject), nil)
	case ProblemLog:
		return r.paths.RemoveLog(agent.ID(p.Subject))
	case ProblemGate:
		return killGate(p.Subject)
	}
	id := agent.ID(strings.TrimSuffix(p.Subject, layerSuffix))
	return r.whileNobodys(id, func(run agent.Run) error {
		if run.Layer != "" {
			return nil // kept meanwhile
		}
		return os.Remove(filepath.Join(r.paths.layers(), p.Subject))
	})
}

// whileNobodys calls remove, unless nil, while nobody can start the run, and
// removes the run's directory. It does neither where the run lives: somebody
// may have started it after gc had looked.
func (r *Runtime) whileNobodys(id agent.ID, remove func(agent.Run) error) error {
	dir, err := claim(r.paths, id)
	if err != nil {
		if errors.Is(err, errAlive) {
			return nil
		}
		return err
	}
	run, err := r.Get(string(id))
	if err != nil && agent.KindOf(err) != agent.KindNotFound {
		dir.release()
		return err
	}
	if run.Lease != nil {
		dir.release() // a dead one, which bury ends
		return nil
	}
	if remove != nil {
		if err := remove(run); err != nil && !errors.Is(err, fs.ErrNotExist) {
			dir.release()
			return err
		}
	}
	return dir.remove()
}

// view is what Check and GC see.
type view struct {
	cgroups                                   *cgroups.Host
	dead, lost                                []agent.Run
	dirs, groups, layers, logs, gates, mounts []Problem
	stuck                                     []Problem
}

// orphans are the things on the host that no run owns.
func (v view) orphans() []Problem {
	return slices.Concat(v.groups, v.dirs, v.layers, v.logs, v.gates)
}

// removalTime is more than a removal takes from the store's word to the last file.
const removalTime = 300 * time.Millisecond

// lookAgain leaves in v only the orphans that are still there later: a run that
// ends or is removed while it is looked at has no owner for a moment, and a gate
// that its supervisor's death killed needs one to die.
func (r *Runtime) lookAgain(v *view) error {
	time.Sleep(removalTime)
	later, err := r.look()
	if err != nil {
		return err
	}
	v.lost = slices.DeleteFunc(v.lost, func(run agent.Run) bool {
		return !slices.ContainsFunc(later.lost, func(l agent.Run) bool { return l.Spec.ID == run.Spec.ID })
	})
	v.stuck = later.stuck
	gone := func(p Problem) bool { return !slices.Contains(later.orphans(), p) }
	for _, kind := range []*[]Problem{&v.groups, &v.dirs, &v.layers, &v.logs, &v.gates} {
		*kind = slices.DeleteFunc(*kind, gone)
	}
	return nil
}

// audit holds the store to account, which takes as long as its past is.
func (r *Runtime) audit() (found []Problem, err error) {
	err = r.withStore(func(s *store.Store) error {
		complaints, err := s.Check()
		for _, text := range complaints {
			found = append(found, Problem{ProblemStore, r.paths.database(), text})
		}
		return err
	})
	return found, err
}

// look lists the orphans of each kind. Directories are listed before the store
// is read: a run that starts meanwhile is then known, not an orphan. Of ended
// runs it reads only those that have something on the host: cloved begins with
// it, whatever its past.
func (r *Runtime) look() (view, error) {
	var v view
	h, err := detect()
	if err != nil {
		return v, err
	}
	v.cgroups = h
	groups, err := r.grouped(h)
	if err != nil {
		return v, err
	}
	dirs, layers, logs := runsOf(r.paths.Run), names(r.paths.layers()), names(r.paths.logs())
	var runs []agent.Run
	var known map[agent.ID]bool
	err = r.withStore(func(s *store.Store) (err error) {
		if v.dead, v.lost, err = r.unsupervised(s); err != nil {
			return err
		}
		if known, err = s.IDs(); err != nil {
			return err
		}
		runs, err = s.Some(idsOf(groups, dirs, layers))
		return err
	})
	if err != nil {
		return v, err
	}
	live, kept := owned(runs)
	still, err := r.grouped(h) // a run that ended meanwhile has taken its own with it
	if err != nil {
		return v, err
	}
	var held map[string]bool
	v.stuck, held = r.stuck(dirs)
	for id := range held {
		live[id] = true // what hangs has them in use
	}
	for _, id := range groups {
		if !live[id] && slices.Contains(still, id) {
			v.groups = append(v.groups, Problem{ProblemCgroup, id, "no live run owns this cgroup"})
		}
	}
	v.dirs = r.orphanDirectories(dirs, live)
	for _, name := range layers {
		if id := strings.TrimSuffix(name, layerSuffix); !live[id] && !kept[id] {
			v.layers = append(v.layers, Problem{ProblemLayer, name, "no run owns this writable layer"})
		}
	}
	v.logs, v.gates = orphanLogs(logs, known), gateProblems()
	v.mounts, err = r.strayMounts()
	return v, err
}

// grouped returns the ids of this installation's agents that have a cgroup.
func (r *Runtime) grouped(h *cgroups.Host) ([]string, error) {
	all, err := h.List()
	if err != nil {
		return nil, agent.Failed("list cgroups", err)
	}
	var ids []string
	for _, name := range all {
		if id, owner, _ := strings.Cut(name, "-"); owner == r.owner {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// owned splits what the store knows into ids of live runs and of kept layers.
func owned(runs []agent.Run) (live, kept map[string]bool) {
	live, kept = map[string]bool{}, map[string]bool{}
	for _, run := range runs {
		live[string(run.Spec.ID)] = run.State != agent.StateEnded
		kept[string(run.Spec.ID)] = run.Layer != ""
	}
	return live, kept
}

// idsOf are the ids that cgroups, run directories and layers are named after.
func idsOf(found ...[]string) []agent.ID {
	var ids []agent.ID
	for _, name := range slices.Concat(found...) {
		ids = append(ids, agent.ID(strings.TrimSuffix(name, layerSuffix)))
	}
	return ids
}

// gateProblems are the gates that outlived their supervisor.
func gateProblems() []Problem {
	var orphans []Problem
	for _, pid := range host.Orphans() {
		orphans = append(orphans, Problem{ProblemGate, strconv.Itoa(pid), "the clove that owned this process with the id of a gate is gone"})
	}
	return orphans
}

func killGate(subject string) error {
	pid, err := strconv.Atoi(subject)
	if err != nil {
		return err
	}
	return host.KillOrphan(pid)
}

// orphanLogs are those of runs that the store does not know, live or ended.
func orphanLogs(logs []string, known map[agent.ID]bool) []Problem {
	var orphans []Problem
	for _, id := range logs {
		if !known[agent.ID(id)] {
			orphans = append(orphans, Problem{ProblemLog, id, "no run owns this log"})
		}
	}
	return orphans
}

// orphanDirectories leaves out those that a starting run has locked already
// and not yet entered in the store, and those that are gone meanwhile.
func (r *Runtime) orphanDirectories(dirs []string, live map[string]bool) []Problem {
	var orphans []Problem
	for _, name := range dirs {
		if live[name] || r.supervised(agent.ID(name)) || !exists(r.paths.runDirectory(agent.ID(name))) {
			continue
		}
		orphans = append(orphans, Problem{ProblemDir, name, "no live run owns this directory"})
	}
	return orphans
}

// strayMounts: clove mounts in private namespaces only, so one that shows here
// is a defect. It is reported and never unmounted.
func (r *Runtime) strayMounts() ([]Problem, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, agent.Failed("list mounts", err)
	}
	var stray []Problem
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // proc_pid_mountinfo(5): the fifth is the mount point
		if len(fields) > 4 && (below(fields[4], r.paths.Run) || below(fields[4], r.paths.State)) {
			stray = append(stray, Problem{ProblemMount, fields[4], "a mount of clove's shows in the host's namespace"})
		}
	}
	return stray, nil
}

func below(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }

// runsOf lists the run directories; cloved's socket lies beside them.
func runsOf(dir string) []string {
	return slices.DeleteFunc(names(dir), func(name string) bool {
		info, err := os.Lstat(filepath.Join(dir, name))
		return err == nil && info.Mode()&os.ModeSocket != 0
	})
}

// names lists a directory; one that is not there is empty.
func names(dir string) []string {
	entries, _ := os.ReadDir(dir)
	list := make([]string, 0, len(entries))
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
