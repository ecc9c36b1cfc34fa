package harbor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/bench/files"
	"clove.run/clove/bench/suite"
	"clove.run/clove/internal/document"
)

// Options are what the caller decides.
type Options struct {
	Rootfs  map[string]string // folder, by image
	Base    []string          // images that this host's base system stands for
	Network map[string]string // AsStated or NoNetwork, by phase
}

// Refused is a task that was not imported.
type Refused struct {
	Task string
	Why  error
}

// Suite is what was read, and not yet written.
type Suite struct {
	Name  string
	tasks []*task
}

// tasksDir is the folder of tasks in a suite.
const tasksDir = "tasks"

// Read translates a task's folder, or each of the folders in dir that has a task.toml.
func Read(dir string, o Options) (Suite, []Refused, error) {
	s := Suite{Name: asWord(filepath.Base(dir))}
	folders, err := taskFolders(dir)
	if err != nil {
		return s, nil, err
	}
	var no []Refused
	seen := map[string]bool{}
	for _, folder := range folders {
		t, err := readTask(folder, o)
		if err == nil && (t.task.Name == "" || seen[t.task.Name]) {
			err = refused(configFile, 0, "its folder's name makes no name of its own: %q", t.task.Name)
		}
		if err != nil {
			no = append(no, Refused{filepath.Base(folder), err})
			continue
		}
		seen[t.task.Name] = true
		s.tasks = append(s.tasks, t)
	}
	return s, no, nil
}

func taskFolders(dir string) ([]string, error) {
	if isTask(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindNotFound, Step: "import", Message: "cannot read it", Hint: "name a task's folder, or a folder of them", Err: err}
	}
	var all []string
	for _, e := range entries {
		if folder := filepath.Join(dir, e.Name()); e.IsDir() && isTask(folder) {
			all = append(all, folder)
		}
	}
	if len(all) == 0 {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "import", Message: fmt.Sprintf("there is no %s in %s, nor in a folder in it", configFile, dir),
			Hint: "name a task's folder, or a folder of them"}
	}
	return all, nil
}

func isTask(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, configFile))
	return err == nil
}

// Tasks is how many were translated.
func (s Suite) Tasks() int { return len(s.tasks) }

// document is the suite with the agent that does nothing and, if each task has a solution, the
// one that runs it.
func (s Suite) document() suite.Suite {
	d := suite.Suite{Version: suite.Version, Name: s.Name, Release: "imported", Description: "tasks in Harbor's format"}
	for _, t := range s.tasks {
		d.Environments = append(d.Environments, t.environment)
		d.Tasks = append(d.Tasks, t.task)
	}
	if !slices.ContainsFunc(d.Tasks, func(t suite.Task) bool { return t.Solution == nil }) {
		d.Agents = append(d.Agents, suite.Agent{Name: "oracle", Command: []string{"/" + solutionFile}, Solution: true, Environment: map[string]string{"DEBIAN_FRONTEND": "noninteractive"}})
	}
	d.Agents = append(d.Agents, suite.Agent{Name: "nothing", Command: []string{"true"}})
	return d
}

// Write makes the suite in a folder that does not exist.
func (s Suite) Write(to string) (err error) {
	if err := os.Mkdir(to, 0o755); err != nil {
		return &agent.Error{Kind: agent.KindConflict, Step: "import", Message: "cannot make " + to, Hint: "name a folder that does not exist with --to", Err: err}
	}
	defer func() {
		if err != nil {
			err = errors.Join(agent.Failed("import", err), os.RemoveAll(to))
		}
	}()
	for _, t := range s.tasks {
		if err := t.write(filepath.Join(to, tasksDir, t.task.Name)); err != nil {
			return err
		}
	}
	d := s.document()
	for i, t := range s.tasks {
		d.Environments[i].Setup.Files = filepath.Join(tasksDir, t.task.Name, "setup")
	}
	text, err := document.Encode(d)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, suite.FileName), text, 0o644); err != nil {
		return err
	}
	_, err = suite.Load(to)
	return err
}

// write copies what the task's sandboxes are shown.
func (t *task) write(to string) error {
	for from, name := range map[string]string{"environment": "setup/context", "tests": "tests", "solution": "solution"} {
		if name == "solution" && t.task.Solution == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(to, name), 0o755); err != nil {
			return err
		}
		if _, err := os.Lstat(filepath.Join(t.dir, from)); errors.Is(err, os.ErrNotExist) {
			continue // an image by its name needs no folder environment
		}
		if err := files.Copy(filepath.Join(t.dir, from), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(to, "setup", "build.sh"), []byte(t.script), 0o644); err != nil {
		return err
	}
	// Harbor makes both executable.
	if err := os.Chmod(filepath.Join(to, testFile), 0o755); err != nil || t.task.Solution == nil {
		return err
	}
	return os.Chmod(filepath.Join(to, solutionFile), 0o755)
}
