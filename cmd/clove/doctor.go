package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/runtime"
)

func doctorCommand() command {
	return command{
		task: "administer", usage: "show what this host can enforce, and what to do about the rest",
		verbs:       []verb{{line: "clove doctor [--json]", act: by(diagnose)}},
		description: "A run that needs something missing is refused at its start; a limit is never dropped.",
		flags:       []cli.Flag{jsonFlag("write the findings as a JSON array")},
	}
}

// diagnose exits with 0 whatever it finds: clove works on a host without one of the
// controllers, and only a run that needs it is refused.
func diagnose(p program, c *cli.Context) error {
	findings := p.doctor(c.String(flagRunDir))
	if c.Bool(flagJSON) {
		return p.printJSON(append([]runtime.Finding{}, findings...))
	}
	return printFindings(p.screen, findings)
}

// printFindings shows beside each check what was found, and below that which limits
// depend on it and the remedy.
func printFindings(s *screen, findings []runtime.Finding) error {
	rows := [][]string{{"CHECK", "STATUS", "FOUND"}}
	for _, f := range findings {
		rows = append(rows, []string{f.Name, f.Status, ""})
	}
	// The third column is wrapped and not cut: a remedy that is cut is of no use. On a
	// narrow terminal it is at least two short cells wide.
	widths := columnWidths(rows)
	room := max(s.width()-widths[0]-widths[1]-2*columnGap, 2*cellFloor)
	rows = rows[:1]
	for _, f := range findings {
		enforces := f.Enforces
		if len(f.Controls) > 0 {
			enforces = strings.Join(f.Controls, ", ") + ": " + enforces
		}
		lines := wrapped(f.Found+f.Missing, room)
		lines = append(lines, wrapped(enforces, room)...)
		if f.Remedy != "" {
			lines = append(lines, wrapped("remedy: "+f.Remedy, room)...)
		}
		rows = append(rows, []string{f.Name, f.Status, lines[0]})
		for _, line := range lines[1:] {
			rows = append(rows, []string{"", "", line})
		}
	}
	return printTable(s.out, rows)
}
