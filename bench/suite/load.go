package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/bench/files"
	"clove.run/clove/internal/document"
)

// FileName is the suite's document in a folder.
const FileName = "suite.yaml"

// mostBytes bounds a document, and mostAttempts what it asks for.
const (
	mostBytes    = 1 << 20
	mostAttempts = 100_000
)

// Schema is the JSON Schema of the document.
func Schema() []byte {
	return document.Schema("https://clove.run/schemas/suite-1.json", "a suite of clove bench", Suite{})
}

// Load reads a suite from a file, or from suite.yaml in a folder.
func Load(path string) (*Suite, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, FileName)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindNotFound, Step: "suite", Message: "cannot read it", Hint: "name a file, or a folder with a " + FileName, Err: err}
	}
	if len(text) > mostBytes {
		return nil, invalid("put long texts into files", "it has %d bytes, and may have %d", len(text), mostBytes)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	s, err := Parse(text)
	if err != nil {
		return nil, err
	}
	s.Dir = dir
	return s, s.seal(text)
}

// Parse reads the text of a suite and checks all that needs no file.
func Parse(text []byte) (*Suite, error) {
	s := &Suite{}
	if err := document.Decode(text, s); err != nil {
		return nil, err
	}
	if len(s.Seeds) == 0 {
		s.Seeds = []int64{1}
	}
	for _, check := range []func(*Suite) error{(*Suite).checkHead, (*Suite).checkEnvironments, (*Suite).checkTasks, (*Suite).checkAgents, (*Suite).checkKept, (*Suite).checkSize} {
		if err := check(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// seal checks that the folders exist, and computes the hash.
func (s *Suite) seal(text []byte) error {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d\n", len(text))
	sum.Write(text)
	for _, folder := range s.folders() {
		hash, err := files.Hash(filepath.Join(s.Dir, folder.path))
		if err != nil {
			return invalid("name a folder beside the suite", "%s: cannot read %q: %v", folder.of, folder.path, err)
		}
		fmt.Fprintf(sum, "%s %s\n", folder.path, hash)
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

type folder struct{ of, path string }

// folders lists every folder that the document names.
func (s *Suite) folders() (all []folder) {
	add := func(of, path string) {
		if path != "" {
			all = append(all, folder{of, path})
		}
	}
	for _, e := range s.Environments {
		if e.Setup != nil {
			add("environments."+e.Name, e.Setup.Files)
		}
	}
	for _, t := range s.Tasks {
		add("tasks."+t.Name, t.Files)
		if t.Solution != nil {
			add("tasks."+t.Name+".solution", t.Solution.Files)
		}
		add("tasks."+t.Name+".grade", t.Grade.Files)
	}
	for _, a := range s.Agents {
		add("agents."+a.Name, a.Files)
	}
	return all
}

// wordPattern is compiled when a suite is read: at start-up every run of clove would pay.
const wordPattern = `^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`

func (s *Suite) checkHead() error {
	switch {
	case s.Version == 0:
		return invalid("write version: 1 in its first line", "it names no version")
	case s.Version != Version:
		return invalid("this clove reads version 1", "it has version %d", s.Version)
	case s.Release == "":
		return invalid("write release: and the suite's own version", "it has no release")
	case len(s.Tasks) == 0:
		return invalid("name at least one below tasks", "it has no task")
	case len(s.Agents) == 0:
		return invalid("name at least one below agents", "it has no agent")
	case s.Parallel < 0:
		return invalid("write a number of attempts", "parallel: %d is none", s.Parallel)
	}
	if start, err := s.Clocks(); err != nil || s.ClockStart != "" && (start < agent.ClockStartFloor || start > agent.ClockStartCeiling) {
		return invalid("write a duration from 1s to 87600h, which is ten years", "clock_start: %.64q is no start of the clocks", s.ClockStart)
	}
	return checkNames("name", []string{s.Name})
}

// Clocks is what ClockStart says; 0: the clocks are the machine's.
func (s *Suite) Clocks() (time.Duration, error) {
	if s.ClockStart == "" {
		return 0, nil
	}
	return time.ParseDuration(string(s.ClockStart))
}

func checkNames(at string, names []string) error {
	word, seen := regexp.MustCompile(wordPattern), map[string]bool{}
	for _, name := range names {
		if !word.MatchString(name) {
			return invalid("use at most 63 letters, digits, '-' and '_'", "%s: %.80q is no name", at, name)
		}
		if seen[name] {
			return invalid("give each a name of its own", "%s: there are two named %q", at, name)
		}
		seen[name] = true
	}
	return nil
}

func (s *Suite) checkEnvironments() error {
	names := make([]string, len(s.Environments))
	for i, e := range s.Environments {
		names[i] = e.Name
		if e.Setup == nil {
			continue
		}
		if len(e.Setup.Commands) == 0 || slices.ContainsFunc(e.Setup.Commands, func(c []string) bool { return len(c) == 0 }) {
			return invalid("write a list of words for each command", "environments.%s.setup: a command is empty", e.Name)
		}
		if err := checkLocal("environments."+e.Name+".setup.files", e.Setup.Files); err != nil {
			return err
		}
	}
	return checkNames("environments", names)
}

func (s *Suite) checkTasks() error {
	names := make([]string, len(s.Tasks))
	for i, t := range s.Tasks {
		names[i] = t.Name
		at := "tasks." + t.Name
		switch _, known := s.FindEnvironment(t.Environment); {
		case t.Instruction == "":
			return invalid("say in instruction what the agent is to do", "%s: it has no instruction", at)
		case !known:
			return invalid("name one of environments", "%s: there is no environment %q", at, t.Environment)
		}
		if err := checkLocal(at+".files", t.Files); err != nil {
			return err
		}
		if err := t.Grade.check(at + ".grade"); err != nil {
			return err
		}
	}
	return checkNames("tasks", names)
}

func (g Grade) check(at string) error {
	switch {
	case len(g.Command) == 0 && len(g.Expect) == 0:
		return invalid("give a command, or what to expect of files", "%s: nothing would be checked", at)
	case g.Score != "" && g.Score != ScoreExit && g.Score != ScoreDescriptor && g.Score != ScoreReward:
		return invalid("write exit, descriptor or reward", "%s: score: %.64q is none of them", at, g.Score)
	case (g.Score == ScoreDescriptor || g.Score == ScoreReward) && len(g.Command) == 0:
		return invalid("give a command", "%s: nothing would write the score", at)
	case g.Pass < 0 || g.Pass > 1:
		return invalid("write a number from 0 to 1", "%s: pass: %v is no score", at, g.Pass)
	}
	for _, e := range g.Expect {
		if err := e.check(at + ".expect"); err != nil {
			return err
		}
	}
	return checkLocal(at+".files", g.Files)
}

func (e Expectation) check(at string) error {
	if e.File != StdoutFile && e.File != StderrFile && !filepath.IsLocal(e.File) {
		return invalid("write a path below /workspace, :stdout or :stderr", "%s: %.80q is no file of an attempt", at, e.File)
	}
	if _, err := regexp.Compile(e.Matches); err != nil {
		return invalid("write a regular expression as RE2 has them", "%s: matches: %v", at, err)
	}
	if e.Absent && (e.Text != "" || e.Matches != "") {
		return invalid("leave away text and matches", "%s: %q cannot be absent and have a content", at, e.File)
	}
	return nil
}

func (s *Suite) checkAgents() error {
	names := make([]string, len(s.Agents))
	for i, a := range s.Agents {
		names[i] = a.Name
		if len(a.Command) == 0 || a.Command[0] == "" {
			return invalid("write its command as a list of words", "agents.%s: it has no command", a.Name)
		}
		if a.Metrics != "" && a.Metrics != MetricsFile && a.Metrics != MetricsDescriptor {
			return invalid("write file or descriptor", "agents.%s: metrics: %.64q is neither", a.Name, a.Metrics)
		}
		if a.Metrics == MetricsDescriptor && s.Kept() {
			return invalid("leave it away, or write root: shared", "agents.%s: metrics: a kept root has no file for them", a.Name)
		}
		for _, key := range slices.Sorted(maps.Keys(a.Environment)) {
			if key == "" {
				return invalid("give the variable a name", "agents.%s.environment: a name is empty", a.Name)
			}
		}
		if err := checkLocal("agents."+a.Name+".files", a.Files); err != nil {
			return err
		}
	}
	return checkNames("agents", names)
}

func (s *Suite) checkSize() error {
	seen := map[int64]bool{}
	for _, seed := range s.Seeds {
		if seen[seed] {
			return invalid("give each seed once", "seeds: %d stands there twice", seed)
		}
		seen[seed] = true
	}
	if n := len(s.Tasks) * len(s.Agents) * len(s.Seeds); n > mostAttempts {
		return invalid("split the suite", "it asks for %d attempts, and may ask for %d", n, mostAttempts)
	}
	return nil
}

// checkLocal refuses a path that leads out of the suite.
func checkLocal(at, path string) error {
	if path != "" && !filepath.IsLocal(path) {
		return invalid("name a folder beside the suite", "%s: %.80q leads out of the suite", at, path)
	}
	return nil
}

// FindEnvironment returns the environment of this name; the empty name is the host's base.
func (s *Suite) FindEnvironment(name string) (Environment, bool) {
	if name == "" {
		return Environment{}, true
	}
	for _, e := range s.Environments {
		if e.Name == name {
			return e, true
		}
	}
	return Environment{}, false
}

// The words of Grade.Score, Agent.Metrics and Expectation.File.
const (
	ScoreExit         = "exit"
	ScoreDescriptor   = "descriptor"
	ScoreReward       = "reward"
	MetricsFile       = "file"
	MetricsDescriptor = "descriptor"
	StdoutFile        = ":stdout"
	StderrFile        = ":stderr"
)

func invalid(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "suite", Message: fmt.Sprintf(format, values...), Hint: hint}
}
