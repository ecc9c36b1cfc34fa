package grade

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/suite"
)

// readMost bounds what is read of a file that a check looks at.
const readMost = 1 << 20

// Tree is where an attempt's files are: its workspace, and the folder of its output.
type Tree struct{ Workspace, Output string }

// Expect checks what the suite expects of files.
func Expect(of []suite.Expectation, tree Tree) []bench.Check {
	checks := make([]bench.Check, len(of))
	for i, e := range of {
		why := expect(e, tree)
		checks[i] = bench.Check{File: e.File, OK: why == "", Why: why}
	}
	return checks
}

// expect returns why an expectation is not met; empty: it is.
func expect(e suite.Expectation, tree Tree) string {
	text, err := read(e.File, tree)
	switch {
	case e.Absent && errors.Is(err, fs.ErrNotExist):
		return ""
	case e.Absent && err == nil:
		return "it exists"
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case err != nil:
		return "it cannot be read"
	case e.Text != "" && strings.TrimRight(text, " \t\r\n") != strings.TrimRight(e.Text, " \t\r\n"):
		return "it has another content"
	case e.Matches != "" && !regexp.MustCompile(e.Matches).MatchString(text): // suite.Load compiled it
		return "nothing in it matches"
	}
	return ""
}

func read(name string, tree Tree) (string, error) {
	dir := tree.Workspace
	if rest, isOutput := strings.CutPrefix(name, ":"); isOutput {
		dir, name = tree.Output, rest
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrNotExist)
	}
	file, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, readMost))
	return string(text), err
}

// Command is the command line of a grader. With a descriptor, the grader's stdout goes where
// its stderr goes, and descriptor 3 is the only way to what Score reads.
func Command(g suite.Grade) []string {
	switch g.Score {
	case suite.ScoreDescriptor:
		return append([]string{"sh", "-c", `exec 3>&1 1>&2; exec "$@"`, "grader"}, g.Command...)
	case suite.ScoreReward:
		return append([]string{"sh", "-c", rewardScript, "grader"}, g.Command...)
	}
	return g.Command
}

// rewardScript writes the reward to stdout, and what the command writes to stderr.
const rewardScript = `"$@" 1>&2
for file in ` + suite.RewardDir + `/reward.json ` + suite.RewardDir + `/reward.txt; do
	if [ -f "$file" ]; then cat "$file"; exit 0; fi
done
echo "there is neither reward.json nor reward.txt" >&2
exit 1`

// Score is the score of a grader that has ended. why is empty for a full one.
func Score(g suite.Grade, record agent.Record, stdout string) (score float64, why string) {
	if record.Status != agent.StatusExited {
		return 0, "grader: " + string(record.Status)
	}
	if record.ExitCode != 0 {
		return 0, fmt.Sprintf("grader: exit status %d", record.ExitCode)
	}
	if g.Score == suite.ScoreReward {
		return reward(stdout)
	}
	if g.Score != suite.ScoreDescriptor {
		return 1, ""
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	score, err := strconv.ParseFloat(strings.TrimSpace(lines[len(lines)-1]), 64)
	if err != nil || !(score >= 0 && score <= 1) {
		return 0, "grader: it wrote no score from 0 to 1 to descriptor 3"
	}
	if score < 1 {
		why = fmt.Sprintf("grader: score %.2f", score)
	}
	return score, why
}

// Sum is the grade of an attempt: the command's score, or 0 if a check failed.
func Sum(g suite.Grade, checks []bench.Check, score float64, why string) (float64, string) {
	for _, c := range checks {
		if !c.OK {
			return 0, c.File + ": " + c.Why
		}
	}
	return score, why
}

// Passes reports whether a score is enough.
func Passes(g suite.Grade, score float64) bool {
	if g.Pass == 0 {
		return score >= 1
	}
	return score >= g.Pass
}
