package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/bench/report"
	"clove.run/clove/bench/suite"
)

const benchName = "bench"

// benchWords are what clove bench does.
var benchWords = map[string]word{
	"run":    {flags: []string{flagResults}, least: 1, do: (*program).benchRun},
	"report": {least: 1, do: (*program).benchReport},
	"schema": {do: (*program).benchSchema},
}

// The flags of clove bench.
const (
	flagResults = "results"
)

func (p *program) benchCommand() *cli.Command {
	return &cli.Command{
		Name: benchName, Usage: "run agents at tasks under the same conditions, and score them",
		UsageText:   "clove bench run [flags] SUITE\nclove bench report DIR\nclove bench schema",
		Description: "SUITE is a file of YAML, or a folder with a suite.yaml.",
		Flags: []cli.Flag{
			value("", flagResults, "", "run: the folder for results", "SUITE-results"),
		},
		Action: p.bench,
	}
}

func (p *program) bench(c *cli.Context) error {
	return p.doWord(c, benchWords, "clove bench run SUITE, report DIR or schema")
}

func (p *program) benchSchema(*cli.Context) error {
	_, err := p.out.Write(suite.Schema())
	return err
}

func (p *program) benchReport(c *cli.Context) error {
	d, err := report.Load(c.Args().Get(1))
	if err != nil {
		return err
	}
	_, err = p.out.WriteString(report.Markdown(d))
	return err
}
