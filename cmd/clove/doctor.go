package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/runtime"
)

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "show what this host can enforce, and what to do about the rest", UsageText: "clove doctor [--json]",
		Description: "A limit that stands on something missing is refused at the start of a run, never dropped.",
		Flags:       []cli.Flag{jsonFlag("write the findings as a JSON array")},
		Action:      p.diagnose,
	}
}

// diagnose exits 0 whatever it finds: a host without one controller is a host
// that clove works on.
func (p *program) diagnose(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	findings := p.doctor(c.String(flagRunDir))
	if c.Bool(flagJSON) {
		return p.printJSON(append([]runtime.Finding{}, findings...))
	}
	rows := [][]string{{"CHECK", "STATUS", "FOUND", "ENFORCES", "REMEDY"}}
	for _, f := range findings {
		enforces := f.Enforces
		if len(f.Controls) > 0 {
			enforces = strings.Join(f.Controls, ", ") + ": " + enforces
		}
		rows = append(rows, []string{f.Name, f.Status, f.Found + f.Missing, enforces, f.Remedy})
	}
	return printTable(p.out, rows)
}
