package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func (p *program) topCommand() *cli.Command {
	return &cli.Command{
		Name: "top", Usage: "list the processes of a live run", UsageText: "clove top [--json] NAME|ID",
		Description: "Ids are those that the processes have inside. Long commands are cut to the terminal's width, or 80 columns;\n--json has them whole.",
		Flags:       []cli.Flag{jsonFlag("write the processes as a JSON array")},
		Action:      ofOneRun(p.withCloved(p.top)),
	}
}

// top shows command lines that the agent chose; printTable keeps them from acting on
// the terminal.
func (p *program) top(c *cli.Context, d *client.Client) error {
	answer, err := client.Do(c.Context, d, methods.RunProcesses, api.RunParams{Run: c.Args().First()})
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(append([]agent.Process{}, answer.Processes...))
	}
	rows := [][]string{{"PID", "PPID", "UID", "S", "THREADS", "CPU", "MEMORY", "STARTED", "COMMAND"}}
	for _, one := range answer.Processes {
		rows = append(rows, []string{strconv.Itoa(one.PID), strconv.Itoa(one.ParentPID), strconv.Itoa(int(one.UID)), one.State, strconv.Itoa(one.Threads),
			(time.Duration(one.CPUMS) * time.Millisecond).String(), size(one.RSSBytes), one.Started.Local().Format(time.TimeOnly), strings.Join(one.Command, " ")})
	}
	return p.printFitting(rows, len(rows[0])-1)
}
