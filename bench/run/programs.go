package run

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/settings"
)

//go:embed programs.sh
var programsScript string

// program is the first word of an agent's or grader's command, and where it is looked up.
type program struct {
	of, name string       // "agents.NAME" or "tasks.NAME.grade", and the word
	dir      string       // where a relative path begins; empty: only the attempt decides
	files    [3]mountedAt // folders of the suite that are shown there
	where    place
}

type mountedAt struct{ target, folder string }

// place is what decides which programs are found inside. Programs of one place are looked up
// in one sandbox.
type place struct{ environment, user, path string }

// Programs refuses a suite of which an agent or a grader would never start, as its program is
// not there: that would be found out only attempt by attempt, and of a grader with a
// descriptor not even then. What the suite's own folders hold is looked up there, everything
// else in a sandbox with the environment of the attempts.
func (r *Runner) Programs(ctx context.Context, attempts []plan.Attempt) error {
	var missing []string
	inside := map[place][]program{}
	var order []place
	for _, p := range r.programsOf(attempts) {
		switch file, known := p.onHost(); {
		case known && file == "":
		case known:
			if _, err := os.Lstat(filepath.Join(r.Suite.Dir, file)); err != nil {
				missing = append(missing, p.String())
			}
		default:
			if inside[p.where] == nil {
				order = append(order, p.where)
			}
			inside[p.where] = append(inside[p.where], p)
		}
	}
	for _, where := range order {
		absent, err := r.lookUp(ctx, where, inside[where])
		if err != nil {
			return err
		}
		missing = append(missing, absent...)
	}
	if len(missing) == 0 {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "suite", Message: "no such program: " + strings.Join(missing, ", "),
		Hint: "correct the command, or have the environment's setup install the program"}
}

// programsOf lists the programs of attempts, each once.
func (r *Runner) programsOf(attempts []plan.Attempt) (all []program) {
	for _, a := range attempts {
		e, _ := r.Suite.FindEnvironment(a.Task.Environment) // suite.Load checked it
		of := []program{ofAgent(a, e)}
		if len(a.Task.Grade.Command) > 0 {
			of = append(of, ofGrader(a.Task, e))
		}
		for _, p := range of {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

func ofAgent(a plan.Attempt, e suite.Environment) program {
	p := program{of: "agents." + a.Agent.Name, name: words(a)[0], where: place{e.Name, "", pathOf(a.Agent.Environment, a.Agent.Pass)}}
	if !strings.Contains(p.name, "/") {
		return p // no folder of the task's has it
	}
	if a.Agent.Files != "" {
		p.files[0] = mountedAt{agentDir, a.Agent.Files}
	}
	if a.Agent.Solution {
		p.files[1] = mountedAt{solutionDir, a.Task.Solution.Files}
	}
	if !e.Kept() {
		p.dir, p.files[2] = agent.WorkspaceDir, mountedAt{agent.WorkspaceDir, a.Task.Files}
	}
	return p
}

func ofGrader(t suite.Task, e suite.Environment) program {
	p := program{of: "tasks." + t.Name + ".grade", name: t.Grade.Command[0], where: place{e.Name, t.Grade.User, pathOf(t.Grade.Variables, nil)}}
	switch {
	case t.Grade.At != "":
		p.files[0] = mountedAt{t.Grade.At, t.Grade.Files}
	case !e.Kept():
		p.dir, p.files[0] = agent.WorkspaceDir, mountedAt{agent.WorkspaceDir, t.Grade.Files}
	}
	return p
}

// pathOf is the variable PATH of a command, as a resolve.Request has it.
func pathOf(variables map[string]string, pass []string) string {
	if value, set := variables["PATH"]; set {
		return "PATH=" + value
	}
	if slices.Contains(pass, "PATH") {
		return "PATH"
	}
	return ""
}

// onHost reports whether the program is not looked up inside: it is in a folder of the suite,
// in which file, or, without one, only the attempt decides.
func (p program) onHost() (file string, known bool) {
	if !strings.Contains(p.name, "/") {
		return "", false
	}
	full := p.name
	if !path.IsAbs(full) {
		if p.dir == "" {
			return "", true
		}
		full = path.Join(p.dir, full)
	}
	full = path.Clean(full)
	for _, m := range p.files {
		if rest, below := strings.CutPrefix(full, m.target+"/"); below && m.target != "" {
			return path.Join(cmp.Or(m.folder, noFolder), rest), true
		}
	}
	return "", strings.HasPrefix(full, "/attempt/")
}

// noFolder stands for a folder that the suite does not name: nothing is in it.
const noFolder = "\x00"

func (p program) String() string {
	if p.where.environment != "" {
		return fmt.Sprintf("%s: %.80q in the environment %s", p.of, p.name, p.where.environment)
	}
	return fmt.Sprintf("%s: %.80q", p.of, p.name)
}

// lookUp returns which programs a sandbox of that place does not have. Without a shell there
// nothing is known, and the attempts say it.
func (r *Runner) lookUp(ctx context.Context, where place, of []program) (missing []string, err error) {
	dir := filepath.Join(r.Dir, workDir, "programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Join(r.Dir, workDir))
	q := r.request(standard, suite.Network{}, r.Suite.Seeds[0], nil)
	r.environment(&q, suite.Task{Environment: where.environment})
	q.Args = []string{"sh", "-c", programsScript, "programs"}
	q.Set(settings.User, cmp.Or(where.user, q.Text(settings.User)))
	q.Set(settings.Remove, "true")
	if where.path != "" {
		q.Add(settings.Env, where.path)
	}
	for _, p := range of {
		q.Args = append(q.Args, p.name)
	}
	out := filepath.Join(dir, "out")
	record, _, err := r.sandbox(ctx, q, Output{Layer: r.prepared[where.environment].layer}, out, filepath.Join(dir, "err"))
	if err != nil || neverStarts(record) {
		return nil, err
	}
	text, err := readBounded(out, probeMost)
	if err == nil && (record.Status != agent.StatusExited || record.ExitCode != 0) {
		err = &agent.Error{Step: "bench", Message: fmt.Sprintf("the search for programs ended with %s, exit status %d", record.Status, record.ExitCode), Hint: "clove doctor says what this host lacks"}
	}
	for _, word := range strings.Fields(text) {
		if i, err := strconv.Atoi(word); err == nil && i >= 1 && i <= len(of) {
			missing = append(missing, of[i-1].String())
		}
	}
	return missing, err
}

// neverStarts reports whether a run did not start because its program is missing or is none:
// another try would end the same.
func neverStarts(r agent.Record) bool {
	return r.Status == agent.StatusStartFailed && r.Error != nil && (r.Error.Step == "look up" || r.Error.Step == "execve")
}
