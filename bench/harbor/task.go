package harbor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/bench/suite"
	"clove.run/clove/policies"
)

// The files of a task's folder.
const (
	configFile      = "task.toml"
	instructionFile = "instruction.md"
	testFile        = "tests/test.sh"
	solutionFile    = "solution/solve.sh"
)

// mostText bounds what is read of one file.
const mostText = 1 << 20

// task is one that can be imported.
type task struct {
	dir         string
	script      string // of the set-up
	environment suite.Environment
	task        suite.Task
}

// readTask translates one folder.
func readTask(dir string, o Options) (*task, error) {
	text, err := read(dir, configFile)
	if err != nil {
		return nil, err
	}
	c, err := readConfig([]byte(text))
	if err != nil {
		return nil, err
	}
	instruction, err := read(dir, instructionFile)
	if err != nil {
		return nil, err
	}
	m, err := readImage(dir, c)
	if err != nil {
		return nil, err
	}
	name := asWord(filepath.Base(dir))
	t := &task{dir: dir, script: m.script.String()}
	t.task = suite.Task{Name: name, Environment: name, Instruction: instruction}
	if t.environment, err = environmentOf(name, c, m, o); err != nil {
		return nil, err
	}
	for _, step := range []func(string, config, Options) error{t.limits, t.networks, t.grader, t.solution} {
		if err := step(name, c, o); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// readImage reads the Dockerfile, or takes the image that task.toml names.
func readImage(dir string, c config) (*image, error) {
	folder := filepath.Join(dir, "environment")
	for _, name := range []string{"docker-compose.yaml", "docker-compose.yml", ".dockerignore"} {
		if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
			return nil, refused("environment/"+name, 0, "it is not translated")
		}
	}
	text, err := read(dir, dockerfile)
	var none *Refusal
	if errors.As(err, &none) && c.Environment.Image != "" {
		text, err = "FROM "+c.Environment.Image+"\n", nil
	}
	if err != nil {
		return nil, err
	}
	return translate(text, folder)
}

func environmentOf(name string, c config, m *image, o Options) (suite.Environment, error) {
	e := suite.Environment{Name: name, Root: suite.RootKept, Workdir: cmp.Or(c.Environment.Workdir, m.workdir), User: m.user, Variables: m.variables}
	var notes []string
	switch dir, given := o.Rootfs[m.from]; {
	case given:
		e.Rootfs = dir
		notes = append(notes, m.from+" is the folder "+dir)
	case slices.Contains(o.Base, m.from):
		notes = append(notes, m.from+" is the base system of the host that runs this")
	default:
		return e, refused(dockerfile, 0, "nothing stands for the image %q (--rootfs, --base)", m.from)
	}
	more, err := variables("environment.env", c.Environment.Env)
	if err != nil {
		return e, err
	}
	maps.Copy(e.Variables, more)
	e.Note = strings.Join(append(notes, m.notes...), "; ")
	e.Disk, err = size("storage", c.Environment.StorageMB, c.Environment.Storage, "10240M")
	return e, err
}

// size reads both of Harbor's forms, 2048 and "2G".
func size(key string, mb int64, text, otherwise string) (policies.Text, error) {
	switch {
	case mb > 0:
		return policies.Text(fmt.Sprintf("%dM", mb)), nil
	case text == "":
		return policies.Text(otherwise), nil
	case !regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[KMGkmg]$`).MatchString(text):
		return "", refused(configFile, 0, "environment.%s: %.40q is no size", key, text)
	}
	return policies.Text(strings.ToUpper(text)), nil
}

// limits has what the task states, and Harbor's own defaults.
func (t *task) limits(_ string, c config, _ Options) error {
	memory, err := size("memory", c.Environment.MemoryMB, c.Environment.Memory, "2G")
	if err != nil {
		return err
	}
	l := suite.Limits{Memory: memory, CPUs: policies.Text(strconv.FormatFloat(cmp.Or(c.Environment.CPUs, 1), 'f', -1, 64)), Pids: "1024", Output: "64M"}
	with := func(seconds float64) suite.Limits {
		l := l
		l.Timeout = policies.Text(strconv.FormatFloat(cmp.Or(seconds, 600), 'f', -1, 64) + "s")
		return l
	}
	t.task.Limits, t.task.Grade.Limits = with(c.Agent.Timeout), with(c.Verifier.Timeout)
	t.environment.Setup = &suite.Setup{Commands: [][]string{{"sh", "/setup/build.sh"}}, Limits: with(c.Environment.Timeout)}
	return nil
}

// grader is tests/test.sh in the sandbox that begins with what the agent left.
func (t *task) grader(name string, c config, _ Options) (err error) {
	g := &t.task.Grade
	if _, err := read(t.dir, testFile); err != nil {
		return err
	}
	g.Command, g.Files, g.At, g.Score = []string{"/" + testFile}, tasksDir+"/"+name+"/tests", "/tests", suite.ScoreReward
	g.Root = suite.RootKept // Harbor's tests run in the agent's container
	if g.Variables, err = variables("verifier.env", c.Verifier.Env); err != nil {
		return err
	}
	if c.Verifier.User != nil {
		if g.User, err = userOf(c.Verifier.User); err != nil {
			return refused(configFile, 0, "verifier.user: %v", err)
		}
	}
	if c.Agent.User != nil {
		user, err := userOf(c.Agent.User)
		if err != nil || user != t.environment.User {
			return refused(configFile, 0, "agent.user: another user than the image's")
		}
	}
	return nil
}

func (t *task) solution(name string, c config, _ Options) error {
	if _, err := read(t.dir, solutionFile); err != nil {
		return nil // a task need not have one
	}
	of, err := variables("solution.env", c.Solution.Env)
	t.task.Solution = &suite.Solution{Files: tasksDir + "/" + name + "/solution", Variables: of}
	return err
}

// read returns the text of a file of the task.
func read(dir, name string) (string, error) {
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil || !info.Mode().IsRegular() {
		return "", refused(name, 0, "it is not there")
	}
	if info.Size() > mostText {
		return "", refused(name, 0, "it has %d bytes, and may have %d", info.Size(), mostText)
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", refused(name, 0, "it cannot be read")
	}
	return string(text), nil
}
