package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/bundle"
	"clove.run/clove/runtime"
)

// debugHistory is how many events are shown, and debugRuns how many live runs are
// queried one by one.
const (
	debugHistory = 1000
	debugRuns    = 32
)

// parts are the parts of the archive. Each is obtained independently of the
// others, so one that hangs or fails costs only itself.
func (p debugVerbs) parts(c *cli.Context, b backend) []bundle.Part {
	state := c.String(flagRoot)
	parts := []bundle.Part{
		{Name: "versions.txt", What: "clove and its host", Make: debugVersions},
		{Name: "doctor.json", What: "what this host can enforce", Make: asJSON(func() (any, error) { return p.doctor(c.String(flagRunDir)), nil })},
		{Name: "check.json", What: "what does not agree: store, processes, cgroups, mounts, directories; [] when all does",
			Make: asJSON(func() (any, error) { found, err := b.Check(); return append([]runtime.Problem{}, found...), err })},
		{Name: "store.json", What: "the store's file", Make: asJSON(func() (any, error) { return b.StoreOverview() })},
		{Name: "runs.json", What: "every run, as it is stored", Make: func(context.Context) ([]byte, error) { return debugRunsTable(b) }},
		{Name: "history.json", What: "what happened last", Make: asJSON(func() (any, error) {
			past, err := b.History(debugHistory)
			return withoutTargets(past), err
		})},
		{Name: "plans.txt", What: "how the roots of live runs are built", Make: func(context.Context) ([]byte, error) { return debugPlans(b) }},
		{Name: "supervisors.txt", What: "what the supervisors of live runs wait for",
			Make: func(ctx context.Context) ([]byte, error) { return debugSupervisors(ctx, b, c.String(flagRunDir)) }},
		{Name: "cloved/process.txt", What: "cloved as the kernel sees it", Make: func(context.Context) ([]byte, error) { return debugProcess(state) }},
	}
	for _, part := range api.DebugParts {
		parts = append(parts, bundle.Part{Name: "cloved/" + string(part) + ".txt", What: "as cloved reports it", Make: func(ctx context.Context) ([]byte, error) {
			// A connection for each part: one that hangs does not delay the others.
			d, err := p.dial(ctx, socket(c))
			if err != nil {
				return nil, err
			}
			defer d.Close()
			answer, err := client.Do(ctx, d, methods.Debug, api.DebugParams{Part: part})
			return []byte(answer.Text), err
		}})
	}
	return append(parts,
		bundle.Part{Name: "cloved/journal.txt", What: "the last lines of cloved and its unit, as journald has them", Make: debugJournal},
		bundle.Part{Name: "cloved/clove.yaml", What: "/etc/clove/clove.yaml, without comments", Make: func(context.Context) ([]byte, error) { return debugConfiguration(configFile) }})
}

// debugVersions needs neither cloved nor the store.
func debugVersions(context.Context) ([]byte, error) {
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("clove %s, API %d, %s %s/%s, %d CPUs\nkernel %s %s\n", version, api.Version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH,
		goruntime.NumCPU(), unix.ByteSliceToString(kernel.Release[:]), unix.ByteSliceToString(kernel.Machine[:]))
	system, err := os.ReadFile("/etc/os-release")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return append([]byte(text), system...), nil
}

// debugRunsTable leaves out what may be a secret (bundle.Redact).
func debugRunsTable(b backend) ([]byte, error) {
	runs, err := b.List()
	if err != nil {
		return nil, err
	}
	stored, err := json.Marshal(append([]agent.Run{}, runs...))
	if err != nil {
		return nil, err
	}
	return bundle.Redact(stored)
}

// liveRuns are the first runs that execute: those with a lease.
func liveRuns(b backend) ([]agent.Run, error) {
	runs, err := b.List()
	live := slices.DeleteFunc(runs, func(run agent.Run) bool { return run.Lease == nil })
	return live[:min(len(live), debugRuns)], err
}

// debugPlans writes how each live run's root was built, computed again from its spec.
func debugPlans(b backend) ([]byte, error) {
	runs, err := liveRuns(b)
	var text bytes.Buffer
	for _, run := range runs {
		plan, err := b.Plan(run)
		if err != nil {
			plan = "cannot plan: " + err.Error() + "\n"
		}
		fmt.Fprintf(&text, "%s %s\n%s\n", run.Spec.ID, run.Spec.Name, plan)
	}
	return text.Bytes(), err
}

// lateTime is reserved at the end of a part's time: the answers that have come by then
// can still be written.
const lateTime = 2 * time.Second

// debugSupervisors queries the supervisors of detached runs, all at once: one that
// hangs costs its own answer. It does not need cloved.
func debugSupervisors(ctx context.Context, b backend, runDir string) ([]byte, error) {
	runs, err := liveRuns(b)
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-lateTime))
		defer cancel()
	}
	answers := make([]api.DebugResult, len(runs))
	var all sync.WaitGroup
	for i, run := range runs {
		all.Go(func() {
			// Its supervisor is a clove in the foreground, which has no socket.
			if !run.Spec.Detached {
				answers[i].Text = "runs in the foreground"
			} else if err := supervisor.Call(ctx, runDir, run.Spec.ID, supervisor.MethodDebug, api.Nothing{}, &answers[i]); err != nil {
				answers[i].Text = "cannot be asked: " + err.Error()
			}
		})
	}
	all.Wait()
	var text bytes.Buffer
	for i, run := range runs {
		fmt.Fprintf(&text, "%s %s, process %d\n\n%s\n\n", run.Spec.ID, run.Spec.Name, run.Lease.SupervisorPID, answers[i].Text)
	}
	return text.Bytes(), err
}

// debugProcess describes the process that holds cloved's lock, also when it does not
// answer. Its environment and arguments may contain secrets and are left out.
func debugProcess(state string) ([]byte, error) {
	note, err := os.ReadFile(filepath.Join(state, "cloved.lock"))
	if err != nil {
		return nil, err
	}
	pid := strings.TrimSpace(string(note))
	directory := filepath.Join("/proc", pid)
	// The file keeps the pid after cloved has ended, and the number may belong to
	// another process by now.
	name, err := os.ReadFile(filepath.Join(directory, "comm"))
	if err != nil || strings.TrimSpace(string(name)) != "cloved" {
		return fmt.Appendf(nil, "process %s, which was cloved, is gone\n", pid), nil
	}
	text := []byte("process " + pid + "\n")
	// wchan shows where in the kernel a process hangs.
	for _, file := range []string{"status", "limits", "cgroup", "wchan", "io"} {
		what, err := os.ReadFile(filepath.Join(directory, file))
		if err != nil {
			what = []byte(err.Error())
		}
		text = fmt.Appendf(text, "\n%s:\n%s\n", file, what)
	}
	open, err := os.ReadDir(filepath.Join(directory, "fd"))
	return fmt.Appendf(text, "\n%d open files\n", len(open)), err
}

// debugJournal asks journald, which also has the last lines of a cloved that has ended.
func debugJournal(ctx context.Context) ([]byte, error) {
	path, err := exec.LookPath("journalctl")
	if err != nil {
		return nil, errors.New("there is no journalctl here")
	}
	command := exec.CommandContext(ctx, path, "--unit", "clove.service", "--lines", "1000", "--no-pager", "--quiet", "--output", "short-iso")
	return command.Output()
}

// configFile is where cloved looks by default.
const configFile = "/etc/clove/clove.yaml"

// debugConfiguration leaves out comments. The configuration has no field for a secret,
// but a comment may contain one.
func debugConfiguration(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []byte("(there is no such file: the defaults hold, or another one is named)\n"), nil
	}
	if err != nil {
		return nil, err
	}
	var kept []byte
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimRight(line, " \t\n"); line != "" {
			kept = append(append(kept, line...), '\n')
		}
	}
	return kept, nil
}

// withoutTargets leaves out what was refused: the agent chose those names and paths.
func withoutTargets(past []agent.RunEvent) []agent.RunEvent {
	shown := append([]agent.RunEvent{}, past...)
	for i, e := range shown {
		if e.Kind == agent.RunDenied || e.Kind == agent.RunRefused {
			shown[i].Detail = "(left out)"
		}
	}
	return shown
}
