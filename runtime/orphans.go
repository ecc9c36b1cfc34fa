package runtime

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress/host"
	"clove.run/clove/internal/creates"
	"clove.run/clove/store"
)

// view is the state of the host that Check and GC compare with the store.
type view struct {
	cgroups                                   *cgroups.Host
	dead, lost                                []agent.Run
	dirs, groups, layers, logs, gates, mounts []Problem
	commands, creates                         []Problem
	stuck, spools, unclaimed                  []Problem
}

// orphans are the things on the host that no run owns.
func (v view) orphans() []Problem {
	return slices.Concat(v.groups, v.commands, v.dirs, v.layers, v.logs, v.gates, v.spools)
}

// removalTime is longer than a removal takes from its transaction in the store to the last
// file.
const removalTime = 300 * time.Millisecond

// lookAgain leaves in v only the orphans that are still there later: a run that ends or is
// removed while it is looked at has no owner for a moment, and a gate that its supervisor's
// death killed needs one to die. Anything younger than the first look is left out too.
func (r *site) lookAgain(v *view) error {
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
	for _, kind := range []*[]Problem{&v.groups, &v.commands, &v.dirs, &v.layers, &v.logs, &v.gates, &v.spools} {
		*kind = slices.DeleteFunc(*kind, gone)
	}
	return nil
}

// audit checks the store against itself, which takes longer the more runs it has.
func (r *site) audit() (found []Problem, err error) {
	err = r.withStore(func(s *store.Store) error {
		contradictions, err := s.Check()
		for _, text := range contradictions {
			found = append(found, Problem{Kind: ProblemStore, Subject: r.paths.database(), Message: text})
		}
		return err
	})
	return found, err
}

// look lists the orphans of each kind. Directories are listed before the store
// is read: a run that starts meanwhile is then known, not an orphan. Of ended
// runs it reads only those that have something on the host: cloved begins with
// it, whatever its past.
func (r *site) look() (view, error) {
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
	dirs, layers, logs := runsOf(r.paths.Run), layersIn(r.paths.layers()), entriesOf(r.paths.logs())
	spools := entriesOf(string(r.paths.Spools()))
	var runs []agent.Run
	var known map[agent.ID]bool
	err = r.withStore(func(s *store.Store) (err error) {
		if v.dead, v.lost, err = r.unsupervised(s); err != nil {
			return err
		}
		// For the logs, which ended runs have too. Ids only: to decode every run would take
		// long.
		if known, err = s.IDs(); err != nil {
			return err
		}
		runs, err = s.Some(idsOf(groups, dirs, layers, spoolRuns(spools)))
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
			v.groups = append(v.groups, Problem{Kind: ProblemCgroup, Subject: id, Message: "no live run owns this cgroup"})
		}
	}
	if v.commands, err = r.orphanCommands(h); err != nil {
		return v, err
	}
	v.dirs = r.orphanDirectories(dirs, live)
	for _, id := range layers {
		if !live[id] && !kept[id] {
			v.layers = append(v.layers, Problem{Kind: ProblemLayer, Subject: id + layerSuffix, Message: "no run owns this writable layer"})
		}
	}
	v.logs, v.gates = orphanLogs(logs, known), gateProblems()
	v.spools, v.unclaimed = r.paths.Spools().orphans(spools, runs, time.Now())
	if v.creates, err = r.killedCreates(); err != nil {
		return v, err
	}
	v.mounts, err = r.strayMounts()
	return v, err
}

// grouped returns the ids of this installation's agents that have a cgroup.
func (r *site) grouped(h *cgroups.Host) ([]string, error) {
	all, err := h.List()
	if err != nil {
		return nil, agent.Failed("list cgroups", err)
	}
	return r.own(all), nil
}

// own returns the ids in the names of this installation's cgroups. Those of other
// installations are not ours to judge: their runs are in a store that this process does not
// read.
func (r *site) own(names []string) (ids []string) {
	for _, name := range names {
		if id, owner, _ := strings.Cut(name, "-"); owner == r.owner {
			ids = append(ids, id)
		}
	}
	return ids
}

// orphanCommands are commands of --on-warn and --on-end whose supervisor was killed.
func (r *site) orphanCommands(h *cgroups.Host) (orphans []Problem, err error) {
	names, err := h.AbandonedCommands()
	for _, id := range r.own(names) {
		orphans = append(orphans, Problem{Kind: ProblemCommand, Subject: id, Message: "the supervisor that began a command of this run has ended"})
	}
	return orphans, agent.Failed("list commands", err)
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
		ids = append(ids, agent.ID(name))
	}
	return ids
}

// layersIn returns the ids after which images and their descriptions are named.
func layersIn(dir string) []string {
	ids := entriesOf(dir)
	for i, name := range ids {
		ids[i] = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return slices.Compact(ids) // names are sorted
}

// gateProblems are the gates that outlived their supervisor.
func gateProblems() []Problem {
	var orphans []Problem
	for _, pid := range host.Orphans() {
		orphans = append(orphans, Problem{Kind: ProblemGate, Subject: strconv.Itoa(pid), Message: "the clove process that owned this gate has ended"})
	}
	return orphans
}

// killGate ends a gate by the pid that look reported; KillOrphan checks again that the pid
// is still such a gate's.
func killGate(subject string) error {
	pid, err := strconv.Atoi(subject)
	if err != nil {
		return err
	}
	return host.KillOrphan(pid)
}

// orphanLogs returns the logs of runs that the store does not know, live or ended.
func orphanLogs(logs []string, known map[agent.ID]bool) []Problem {
	var orphans []Problem
	for _, id := range logs {
		if !known[agent.ID(id)] {
			orphans = append(orphans, Problem{Kind: ProblemLog, Subject: id, Message: "no run owns this log"})
		}
	}
	return orphans
}

// orphanDirectories leaves out those that a starting run has locked already
// and not yet entered in the store, and those that are gone meanwhile.
func (r *site) orphanDirectories(dirs []string, live map[string]bool) []Problem {
	var orphans []Problem
	for _, name := range dirs {
		if live[name] || r.supervised(agent.ID(name)) || !exists(r.paths.runDirectory(agent.ID(name))) {
			continue
		}
		orphans = append(orphans, Problem{Kind: ProblemDir, Subject: name, Message: "no live run owns this directory"})
	}
	return orphans
}

// strayMounts: clove mounts in private namespaces only, so one that shows here
// is a defect. It is reported and never unmounted.
func (r *site) strayMounts() ([]Problem, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, agent.Failed("list mounts", err)
	}
	var stray []Problem
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // proc_pid_mountinfo(5): the fifth is the mount point
		if len(fields) > 4 && (isBelow(fields[4], r.paths.Run) || isBelow(fields[4], r.paths.State)) {
			stray = append(stray, Problem{Kind: ProblemMount, Subject: fields[4], Message: "a mount of clove's is visible in the host's mount namespace"})
		}
	}
	return stray, nil
}

// isBelow is true of what lies in dir, not of dir itself, on which an administrator may well
// have mounted a file system.
func isBelow(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }

// runsOf lists the run directories; cloved's sockets and journals lie beside them.
func runsOf(dir string) []string {
	return slices.DeleteFunc(entriesOf(dir), func(name string) bool {
		info, err := os.Lstat(filepath.Join(dir, name))
		return err == nil && info.Mode()&os.ModeSocket != 0 || name == journals || name == creates.Name
	})
}

// killedCreates are the cgroups of OCI containers whose create was killed before its engine
// could see them. They are reported and never removed here: the container's id is in use until
// the engine deletes it.
func (r *site) killedCreates() (found []Problem, err error) {
	notes, err := creates.Abandoned(filepath.Join(r.paths.Run, creates.Name))
	if err != nil {
		return nil, agent.Failed("list OCI containers", err)
	}
	for _, n := range notes {
		left := slices.Sorted(maps.Values(n.Paths))
		left = slices.Compact(slices.DeleteFunc(left, func(path string) bool { return !exists(path) }))
		// With libcontainer's file the create had got so far that engines list the container.
		if len(left) == 0 || exists(filepath.Join(n.Directory, "state.json")) {
			continue
		}
		root, id := filepath.Split(n.Directory)
		message := fmt.Sprintf("the create of this OCI container was killed: clove-oci --root %s delete --force %s removes it", filepath.Clean(root), id)
		if more := len(left) - 1; more > 0 {
			message += fmt.Sprintf(", and its cgroups in %d other hierarchies", more)
		}
		found = append(found, Problem{Kind: ProblemCreate, Subject: left[0], Message: message})
	}
	return found, nil
}
