package suite

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// The words of Environment.Root and Grade.Root.
const (
	RootShared = "shared"
	RootKept   = "kept"
	RootOwn    = "own"
)

// RewardDir is where a grader with ScoreReward leaves its score.
const RewardDir = "/logs/verifier"

// Kept reports whether the whole root is what an attempt works in.
func (e Environment) Kept() bool { return e.Root == RootKept }

// OwnRoot reports whether a grader has a root of its own beside the one that an agent left.
func (g Grade) OwnRoot(e Environment) bool { return e.Kept() && g.Root != RootKept }

// Kept reports whether any task's attempts keep their whole root.
func (s *Suite) Kept() bool {
	return slices.ContainsFunc(s.Tasks, func(t Task) bool {
		e, _ := s.FindEnvironment(t.Environment)
		return e.Kept()
	})
}

// checkKept checks what environments, tasks and agents with a root of their own may have.
func (s *Suite) checkKept() error {
	for _, e := range s.Environments {
		if err := e.checkRoot("environments." + e.Name); err != nil {
			return err
		}
	}
	for _, t := range s.Tasks {
		at := "tasks." + t.Name
		if t.Solution != nil {
			if err := checkLocal(at+".solution.files", t.Solution.Files); err != nil {
				return err
			}
			if err := checkVariables(at+".solution", t.Solution.Variables); err != nil {
				return err
			}
		}
		if err := t.Grade.checkPlaces(at + ".grade"); err != nil {
			return err
		}
		e, _ := s.FindEnvironment(t.Environment)
		switch {
		case e.Kept():
			if err := t.checkOnRoot(at); err != nil {
				return err
			}
		case t.Grade.Root != "":
			return invalid("leave it away, or write root: kept into its environment", "%s.grade: root: its environment keeps no root", at)
		}
	}
	return s.checkPairs()
}

func (e Environment) checkRoot(at string) error {
	switch {
	case e.Root != "" && e.Root != RootShared && e.Root != RootKept:
		return invalid("write shared or kept", "%s: root: %.64q is neither", at, e.Root)
	case !e.Kept() && e.Disk != "":
		return invalid("write disk into the limits, or root: kept", "%s: disk is the size of a kept root", at)
	case e.Kept() && e.Setup != nil && e.Setup.Limits.Disk != "":
		return invalid("write disk into the environment", "%s.setup.limits: all phases share one disk", at)
	case e.Workdir != "" && e.Workdir != "/" && !isPlace(e.Workdir):
		return invalid("write an absolute path", "%s: workdir: %.80q is none", at, e.Workdir)
	}
	return checkVariables(at, e.Variables)
}

// checkOnRoot refuses what has no place where the whole root is the agent's.
func (t Task) checkOnRoot(at string) error {
	switch {
	case t.Files != "":
		return invalid("write them in the environment's set-up", "%s: files would be at /workspace, and its environment keeps the whole root", at)
	case t.Limits.Disk != "" || t.Grade.Limits.Disk != "":
		return invalid("write disk into the environment", "%s: all phases share one disk", at)
	case t.Grade.Files != "" && t.Grade.At == "":
		return invalid("write at: and an absolute path", "%s.grade: files would be at /workspace, and its environment keeps the whole root", at)
	}
	for _, e := range t.Grade.Expect {
		if e.File != StdoutFile && e.File != StderrFile {
			return invalid("let the grader's command check it", "%s.grade.expect: %.80q: clove itself reads no file of a kept root", at, e.File)
		}
	}
	return nil
}

func (g Grade) checkPlaces(at string) error {
	if g.Root != "" && g.Root != RootOwn && g.Root != RootKept {
		return invalid("write own or kept", "%s: root: %.64q is neither", at, g.Root)
	}
	if g.At != "" && (!isPlace(g.At) || isTaken(g.At) || g.Files == "") {
		return invalid("write an absolute path other than /workspace, /attempt and /output, and files", "%s: at: %.80q is no place for its files", at, g.At)
	}
	return checkVariables(at, g.Variables)
}

// checkPairs refuses agents that lack something at one of the tasks.
func (s *Suite) checkPairs() error {
	for _, a := range s.Agents {
		for _, t := range s.Tasks {
			if a.Solution && t.Solution == nil {
				return invalid("give the task a solution, or the agent none", "agents.%s: the task %s has no solution", a.Name, t.Name)
			}
		}
	}
	return nil
}

func checkVariables(at string, of map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if key == "" {
			return invalid("give the variable a name", "%s.variables: a name is empty", at)
		}
	}
	return nil
}

// isTaken reports whether a grader has something else there.
func isTaken(p string) bool {
	return p == "/workspace" || slices.ContainsFunc([]string{"/attempt", "/output"}, func(own string) bool { return p == own || strings.HasPrefix(p, own+"/") })
}

// isPlace reports whether p is an absolute path below / without detours.
func isPlace(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }
