package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/pidfd"
)

// stuckFile, in a run directory, names the processes of a start that was given up.
const stuckFile = "stuck"

// stuckNote is the content of stuckFile.
type stuckNote struct {
	Name      string         `json:"name"` // the run's, which the store may have forgotten
	Step      string         `json:"step"`
	Processes []stuckProcess `json:"processes"`
}

// stuckProcess is a process. Its start time distinguishes it from later ones with its pid.
type stuckProcess struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // ticks since boot, proc_pid_stat(5)
}

// family is every process that a start may leave: this one, its children, and
// those in the agent's cgroup, if it has a lease.
func family(lease *agent.Lease) []stuckProcess {
	pids, _ := processChildren() // this process is the first to be asked about anyway
	pids = append(pids, os.Getpid())
	if lease != nil {
		if group, err := cgroups.Open(lease.Cgroups); err == nil {
			members, _ := group.Pids()
			pids = append(pids, members...)
		}
	}
	slices.Sort(pids)
	var all []stuckProcess
	for _, pid := range slices.Compact(pids) {
		if started, err := pidfd.StartTime(pid); err == nil {
			all = append(all, stuckProcess{pid, started})
		}
	}
	return all
}

// processChildren lists the children of all threads of this process.
func processChildren() (pids []int, err error) {
	files, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is well-formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return pids, fmt.Errorf("cannot list clove's children: %w", err)
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// thread finds one that has not ended; 0: the process is gone, or a zombie. A process whose
// first thread has ended shows as a zombie while another thread hangs, so all threads are
// looked at.
func (p stuckProcess) thread() int {
	if started, err := pidfd.StartTime(p.PID); err != nil || started != p.Started {
		return 0
	}
	for _, name := range entriesOf(fmt.Sprintf("/proc/%d/task", p.PID)) {
		tid, _ := strconv.Atoi(name) // the kernel's own
		if fields, err := pidfd.Stat(tid); err == nil && !strings.Contains("ZX", fields[0]) {
			return tid
		}
	}
	return 0
}

// stuckIn reports the processes that hold a run directory's start in the kernel.
func stuckIn(path string) (found []Problem) {
	var note stuckNote
	text, err := os.ReadFile(filepath.Join(path, stuckFile))
	if err != nil || json.Unmarshal(text, &note) != nil {
		return nil
	}
	for _, p := range note.Processes {
		if tid := p.thread(); tid != 0 {
			found = append(found, Problem{Kind: ProblemProcess, Subject: strconv.Itoa(p.PID), Message: fmt.Sprintf("the start of %s was given up in its step %s, and %s cannot be ended", note.Name, note.Step, cgroups.Describe(tid))})
		}
	}
	return found
}

// stuck looks at all run directories; ids are those that something holds.
func (r *site) stuck(dirs []string) (found []Problem, ids map[string]bool) {
	ids = map[string]bool{}
	for _, id := range dirs {
		if problems := stuckIn(r.paths.runDirectory(agent.ID(id))); len(problems) > 0 {
			found, ids[id] = append(found, problems...), true
		}
	}
	return found, ids
}

// errStuck says what keeps a run from being started or cleaned up.
func errStuck(problems []Problem) error {
	var failures []error
	for _, p := range problems {
		failures = append(failures, errors.New(p.Message))
	}
	return errors.Join(failures...)
}
