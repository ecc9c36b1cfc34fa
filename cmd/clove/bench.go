package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/resolve"
)

const benchName = "bench"

// The flags of clove bench.
const (
	flagResults   = "results"
	flagResume    = "resume"
	flagFailFast  = "fail-fast"
	flagRetries   = "retries"
	flagParallel  = "parallel"
	flagNoParity  = "no-parity"
	flagQuietHost = "require-quiet"
	flagCache     = "environments"
	flagBase      = "base"
	flagPartly    = "partly"
)

// standardRetries are those of attempts that failed for the infrastructure.
const standardRetries = 2

// benchVerbs are those of clove bench.
type benchVerbs program

func benchCommand() command {
	return command{
		task: "run", usage: "run agents at tasks under the same conditions, and score them",
		verbs: []verb{
			{line: "clove bench run [flags] SUITE", act: of(benchVerbs.run),
				also: []string{flagResults, flagFilter, flagResume, flagFailFast, flagRetries, flagParallel, flagNoParity, flagQuietHost, flagCache}},
			{line: "clove bench plan [--filter PATTERN]... SUITE", act: of(benchVerbs.plan)},
			{line: "clove bench check [--require-quiet]", act: of(benchVerbs.check)},
			{line: "clove bench report [--format FORMAT] DIR", act: prints(benchReport)},
			{line: "clove bench compare DIR[:AGENT] DIR[:AGENT]", act: prints(benchCompare)},
			{line: "clove bench verify DIR [SUITE]", act: of(benchVerbs.verify), also: []string{flagCache}},
			{line: "clove bench import harbor [flags] DIR", act: of(benchVerbs.importTasks), also: []string{flagTo, flagRootfs, flagBase, flagNetwork, flagPartly}},
			{line: "clove bench schema", act: prints(benchSchema)},
		},
		description: "SUITE is a file of YAML, or a folder with a suite.yaml; schema prints its JSON Schema. run makes every attempt of tasks,\n" +
			"agents and seeds, each in a sandbox of its own, and grades it in another one. plan lists the attempts. check says what of\n" +
			"this machine makes figures vary. report writes a report; its formats are markdown, junit, csv and html. compare pairs attempts at\n" +
			"the same task with the same seed, and says whether the data tell the two sides apart. verify compares what was kept with\n" +
			"the hashes in the results, and with SUITE grades every attempt again: exit status 1 if something differs. import makes a\n" +
			"suite of a task in Harbor's format, or of a folder of them; no image is fetched, so it must be told what stands for each.\n\n" +
			"Exit status of run: 0 if each attempt has a result, whatever it is; 1 if some have none. An agent that runs out of time or\n" +
			"memory has a result; one whose sandbox did not start has none, and is tried again (--retries).",
		flags: []cli.Flag{
			value("", flagResults, "", "run: the folder for results", "NAME-results"),
			values("", flagFilter, "", "run, plan: only attempts TASK[.AGENT[.SEED]], * stands for anything", ""),
			boolean("", flagResume, "", "run: make only the attempts that have no result in the folder"),
			boolean("", flagFailFast, "", "run: begin no attempt after one that has not passed"),
			value("", flagRetries, "", "run: further tries of an attempt whose sandbox failed", fmt.Sprint(standardRetries)),
			value("", flagParallel, "", "run: attempts at once, as far as processors and memory allow", "the suite's, or as many as there is room for"),
			value("", flagFormat, "", "report: markdown, junit, csv or html", "markdown"),
			boolean("", flagNoParity, "", "run: leave processors, time zone, locale, host name and seeds as they are in clove run"),
			boolean("", flagQuietHost, "", "run, check: refuse a machine that makes figures vary"),
			value("", flagTo, "", "import: the folder to make", "NAME-suite"),
			values("", flagRootfs, "", "import: IMAGE=DIR, a folder that stands for an image", ""),
			values("", flagBase, "", "import: an image that this host's base system stands for", ""),
			values("", flagNetwork, "", "import: agent=task or grader=task gives the phase the network that the task states, =none gives it none", ""),
			boolean("", flagPartly, "", "import: leave out tasks that cannot be translated"),
			value("", flagCache, "", "run, verify: the folder that keeps environments for other benches", "in the folder for results"),
		},
	}
}

func benchSchema(s *screen, _ *cli.Context) error {
	_, err := s.out.Write(suite.Schema())
	return err
}

// plan lists the attempts in the order in which they begin.
func (p benchVerbs) plan(c *cli.Context) error {
	_, attempts, err := p.attempts(c)
	for _, a := range attempts {
		if err == nil {
			_, err = fmt.Fprintln(p.out, a.ID())
		}
	}
	return err
}

// attempts reads the suite and chooses attempts.
func (p benchVerbs) attempts(c *cli.Context) (*suite.Suite, []plan.Attempt, error) {
	h, err := p.host()
	if err != nil {
		return nil, nil, err
	}
	path := c.Args().Get(1)
	s, err := suite.Load(h.Absolute(path))
	if err != nil {
		if _, other := resolve.LoadManifest(path, h); other == nil && resolve.IsManifest(path) {
			err = invalid("", "write it as one of the suite's agents, whose keys docs/bench.md has: clove manifest show "+path+" prints its settings", "%s is the manifest of an agent, and no suite", path)
		}
		return nil, nil, err
	}
	attempts, err := plan.Filter(plan.All(s), c.StringSlice(flagFilter))
	return s, attempts, err
}
