package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/suite"
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

func benchCommand() command {
	return command{
		task: "run", usage: "run agents at tasks under the same conditions, and score them",
		verbs: []verb{
			{line: "clove bench run [flags] SUITE", act: hand((*program).benchRun),
				also: []string{flagResults, flagFilter, flagResume, flagFailFast, flagRetries, flagParallel, flagNoParity, flagQuietHost, flagCache}},
			{line: "clove bench plan [--filter PATTERN]... SUITE", act: hand((*program).benchPlan)},
			{line: "clove bench check [--require-quiet]", act: hand((*program).benchCheck)},
			{line: "clove bench report [--format FORMAT] DIR", act: hand((*program).benchReport)},
			{line: "clove bench compare DIR[:AGENT] DIR[:AGENT]", act: hand((*program).benchCompare)},
			{line: "clove bench verify DIR [SUITE]", act: hand((*program).benchVerify), also: []string{flagCache}},
			{line: "clove bench import harbor [flags] DIR", act: hand((*program).benchImport), also: []string{flagTo, flagRootfs, flagBase, flagNetwork, flagPartly}},
			{line: "clove bench schema", act: hand((*program).benchSchema)},
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

func (p *program) benchSchema(*cli.Context) error {
	_, err := p.out.Write(suite.Schema())
	return err
}

// benchPlan lists the attempts in the order in which they begin.
func (p *program) benchPlan(c *cli.Context) error {
	_, attempts, err := p.benchAttempts(c)
	for _, a := range attempts {
		if err == nil {
			_, err = fmt.Fprintln(p.out, a.ID())
		}
	}
	return err
}

// benchAttempts reads the suite and chooses attempts.
func (p *program) benchAttempts(c *cli.Context) (*suite.Suite, []plan.Attempt, error) {
	h, err := p.host()
	if err != nil {
		return nil, nil, err
	}
	s, err := suite.Load(h.Absolute(c.Args().Get(1)))
	if err != nil {
		return nil, nil, err
	}
	attempts, err := plan.Filter(plan.All(s), c.StringSlice(flagFilter))
	return s, attempts, err
}
