package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	results "clove.run/clove/bench"
	"clove.run/clove/bench/compare"
	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/report"
	"clove.run/clove/bench/run"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/host"
)

// benchFormats are what clove bench report writes.
func benchFormats() map[string]func(report.Data) (string, error) {
	sure := func(of func(report.Data) string) func(report.Data) (string, error) {
		return func(d report.Data) (string, error) { return of(d), nil }
	}
	return map[string]func(report.Data) (string, error){
		"markdown": sure(report.Markdown), "junit": sure(report.JUnit), "html": report.HTML, "csv": report.CSV,
	}
}

func benchReport(s *screen, c *cli.Context) error {
	name := c.String(flagFormat)
	if name == "" {
		name = "markdown"
	}
	write := benchFormats()[name]
	if write == nil {
		return invalid(flagFormat, "write markdown, junit, csv or html", "%.64q is no format of a report", name)
	}
	d, err := report.Load(c.Args().Get(1))
	if err != nil {
		return err
	}
	text, err := write(d)
	if err == nil {
		_, err = s.out.WriteString(text)
	}
	return err
}

// benchCompare says how two sets of results differ.
func benchCompare(s *screen, c *cli.Context) error {
	var sides [2]compare.Side
	var hashes [2]string
	for i := range sides {
		dir, who := c.Args().Get(i+1), ""
		if _, err := os.Stat(dir); err != nil {
			if at := strings.LastIndexByte(dir, ':'); at >= 0 {
				dir, who = dir[:at], dir[at+1:]
			}
		}
		d, err := report.Load(dir)
		if err != nil {
			return err
		}
		sides[i], hashes[i] = compare.Side{Results: d.Results, Agent: who}, d.Manifest.Suite.SHA256
	}
	found, unpaired, err := compare.Compare(sides[0], sides[1])
	if err != nil {
		return err
	}
	if hashes[0] != hashes[1] {
		s.say("bench", cyan, "the suites differ: the same names may stand for other tasks")
	}
	if unpaired > 0 {
		s.say("bench", cyan, fmt.Sprintf("%d results have no counterpart, and count nowhere", unpaired))
	}
	if _, err := fmt.Fprintln(s.out, printable(compare.Verdict(c.Args().Get(1), c.Args().Get(2), found))); err != nil {
		return err
	}
	return printTable(s.out, differenceRows(found))
}

func differenceRows(found []compare.Difference) [][]string {
	rows := [][]string{{"FIGURE", "FIRST", "SECOND", "DIFFERENCE", "95 % INTERVAL", "PAIRS", "TASKS", "VERDICT"}}
	for _, d := range found {
		interval, verdict := "-", "too few tasks to tell"
		if !math.IsNaN(d.Interval.Low) {
			interval, verdict = fmt.Sprintf("%.4g to %.4g", d.Interval.Low, d.Interval.High), "cannot be told apart"
		}
		if d.Distinct() {
			verdict = "differ"
		}
		rows = append(rows, []string{d.Figure, fmt.Sprintf("%.4g", d.First), fmt.Sprintf("%.4g", d.Second), fmt.Sprintf("%+.4g", d.Mean), interval, fmt.Sprint(d.Pairs), fmt.Sprint(d.Tasks), verdict})
	}
	return rows
}

// verify checks a folder of results, and with the suite grades each attempt again.
func (p benchVerbs) verify(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	dir := h.Absolute(c.Args().Get(1))
	d, err := report.Load(dir)
	if err != nil {
		return err
	}
	var runner *run.Runner
	attempts := map[string]plan.Attempt{}
	if path := c.Args().Get(2); path != "" {
		if runner, err = p.regrader(c, h, d, path); err != nil {
			return err
		}
		for _, a := range plan.All(runner.Suite) {
			attempts[a.ID()] = a
		}
	}
	return p.verifyAll(c, d, runner, attempts)
}

// regrader makes what grades again, with the suite that the results are of.
func (p benchVerbs) regrader(c *cli.Context, h host.Host, d report.Data, path string) (*run.Runner, error) {
	s, err := suite.Load(h.Absolute(path))
	if err != nil {
		return nil, err
	}
	if s.SHA256 != d.Manifest.Suite.SHA256 {
		return nil, &agent.Error{Kind: agent.KindConflict, Step: "verify", Message: "the results are of another suite, or of another state of it",
			Hint: "name the suite with the hash " + d.Manifest.Suite.SHA256}
	}
	runner := &run.Runner{Suite: s, Host: h, Dir: d.Dir, NoParity: !d.Manifest.Parity, Retries: standardRetries}
	if runner.Sandboxes, err = p.sandboxes(c, h); err != nil {
		return nil, err
	}
	if h.UID != 0 && s.Kept() {
		return nil, needsRoot()
	}
	return runner, runner.Prepare(c.Context, environments(c, h))
}

// verifyAll reports each attempt that is not as its result says; exit status 1 if one is not.
func (p benchVerbs) verifyAll(c *cli.Context, d report.Data, runner *run.Runner, attempts map[string]plan.Attempt) error {
	bad, graded := 0, 0
	if sum, err := run.SumFile(filepath.Join(d.Dir, results.ResultsFile)); d.Manifest.Results != "" && (err != nil || sum != d.Manifest.Results) {
		bad++
		p.say("bench", red, results.ResultsFile+" has changed since the bench ended")
	}
	for _, r := range d.Results {
		if r.Outcome == results.Infrastructure {
			continue
		}
		wrong := run.CheckHashes(d.Dir, r)
		if a, known := attempts[r.Attempt]; runner != nil && known && r.Grade != nil && len(wrong) == 0 {
			again, err := runner.Regrade(c.Context, a, r)
			if err != nil {
				return err
			}
			wrong = append(wrong, again...)
			graded++
		}
		if len(wrong) > 0 {
			bad++
			p.say("bench", red, r.Attempt+": "+strings.Join(wrong, "; "))
		}
	}
	if _, err := fmt.Fprintf(p.out, "%d attempts, %d graded again, %d not as their results say\n", len(d.Results), graded, bad); err != nil {
		return err
	}
	if bad > 0 {
		return exitStatus(exitFailed)
	}
	return nil
}
