package run

import (
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
)

//go:embed programs.sh
var programsScript string

// program is the first word of an agent's or grader's command, and where it is looked up.
type program struct {
	of, name string       // "agents.NAME" or "tasks.NAME.grade", and the word
	files    [2]mountedAt // folders of the suite that are shown there
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
	for _, p := range programsOf(attempts) {
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
func programsOf(attempts []plan.Attempt) (all []program) {
	add := func(p program) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, a := range attempts {
		p := program{of: "agents." + a.Agent.Name, name: words(a)[0], where: place{environment: a.Task.Environment, path: pathOf(a.Agent)}}
		if strings.Contains(p.name, "/") {
			p.files = [2]mountedAt{{agent.WorkspaceDir, a.Task.Files}, {agentDir, a.Agent.Files}}
		}
		add(p)
		if g := a.Task.Grade; len(g.Command) > 0 {
			p := program{of: "tasks." + a.Task.Name + ".grade", name: g.Command[0], where: place{environment: a.Task.Environment, user: g.User}}
			p.files[0] = mountedAt{agent.WorkspaceDir, g.Files}
			add(p)
		}
	}
	return all
}

// pathOf is the variable PATH that an agent asks for, as a build.Request has it.
func pathOf(a suite.Agent) string {
	if value, set := a.Environment["PATH"]; set {
		return "PATH=" + value
	}
	if slices.Contains(a.Pass, "PATH") {
		return "PATH"
	}
	return ""
}

// onHost reports whether the program is in a folder of the suite, and in which file; none
// where only the attempt decides.
func (p program) onHost() (file string, known bool) {
	if !strings.Contains(p.name, "/") {
		return "", false
	}
	full := p.name
	if !path.IsAbs(full) {
		full = path.Join(agent.WorkspaceDir, full)
	}
	full = path.Clean(full)
	for _, m := range p.files {
		if rest, below := strings.CutPrefix(full, m.target+"/"); below && m.target != "" {
			return path.Join(m.folder, rest), true
		}
	}
	return "", strings.HasPrefix(full, "/attempt/")
}

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
	q.User, q.Remove, q.Args = where.user, true, []string{"sh", "-c", programsScript, "programs"}
	if where.path != "" {
		q.Env = append(q.Env, where.path)
	}
	for _, p := range of {
		q.Args = append(q.Args, p.name)
	}
	out := filepath.Join(dir, "out")
	record, _, err := r.sandbox(ctx, q, r.prepared[where.environment].layer, out, filepath.Join(dir, "err"), nil)
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
