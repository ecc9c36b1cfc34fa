package grade

import (
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/suite"
)

func TestExpectations(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(dir, "a"): "one\ntwo \n\n", filepath.Join(out, "stdout"): "42\n", filepath.Join(t.TempDir(), "secret"): "x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		e   suite.Expectation
		why string
	}{
		{suite.Expectation{File: "a"}, ""},
		{suite.Expectation{File: "a", Text: "one\ntwo"}, ""},
		{suite.Expectation{File: "a", Text: "one"}, "it has another content"},
		{suite.Expectation{File: "a", Matches: "(?m)^two"}, ""},
		{suite.Expectation{File: "a", Matches: "three"}, "nothing in it matches"},
		{suite.Expectation{File: "b"}, "it does not exist"},
		{suite.Expectation{File: "b", Absent: true}, ""},
		{suite.Expectation{File: "a", Absent: true}, "it exists"},
		{suite.Expectation{File: ":stdout", Text: "42"}, ""},
		{suite.Expectation{File: "link", Matches: "root"}, "it does not exist"}, // it leads out
	} {
		if got := expect(c.e, Tree{dir, out}); got != c.why {
			t.Errorf("%+v: %q, want %q", c.e, got, c.why)
		}
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	exited := agent.Record{Status: agent.StatusExited}
	by := suite.Grade{Score: suite.ScoreDescriptor}
	for _, c := range []struct {
		grade  suite.Grade
		record agent.Record
		stdout string
		score  float64
		why    string
	}{
		{suite.Grade{}, exited, "0.2", 1, ""},
		{suite.Grade{}, agent.Record{Status: agent.StatusExited, ExitCode: 2}, "", 0, "grader: exit status 2"},
		{suite.Grade{}, agent.Record{Status: agent.StatusTimeout, ExitCode: 124}, "", 0, "grader: timeout"},
		{by, exited, "noise\n0.25\n", 0.25, "grader: score 0.25"},
		{by, exited, "1", 1, ""},
		{by, exited, "", 0, "grader: it wrote no score from 0 to 1 to descriptor 3"},
		{by, exited, "1.5", 0, "grader: it wrote no score from 0 to 1 to descriptor 3"},
		{by, exited, "NaN", 0, "grader: it wrote no score from 0 to 1 to descriptor 3"},
		{by, agent.Record{Status: agent.StatusExited, ExitCode: 1}, "1", 0, "grader: exit status 1"},
	} {
		if score, why := Score(c.grade, c.record, c.stdout); score != c.score || why != c.why {
			t.Errorf("%+v %q: %v %q", c.record, c.stdout, score, why)
		}
	}
	if score, why := Sum(by, []bench.Check{{File: "a", Why: "it exists"}}, 1, ""); score != 0 || why != "a: it exists" {
		t.Error(score, why)
	}
	if !Passes(suite.Grade{}, 1) || Passes(suite.Grade{}, 0.99) || !Passes(suite.Grade{Pass: 0.5}, 0.5) {
		t.Error("the border of passing")
	}
}
