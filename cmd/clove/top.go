package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api/methods"
)

func topCommand() command {
	return command{
		task: "look", runs: completeLive, usage: "list the processes of a live run",
		verbs:       []verb{{line: "clove top [--json] NAME|ID", act: ask(methods.RunProcesses).columns("PID", "PPID", "UID", "S", "THREADS", "CPU", "MEMORY", "STARTED", "COMMAND")}},
		description: "Ids are those that the processes have inside. Long commands are cut to the terminal's width, or 80 columns;\n--json has them whole.",
		flags:       []cli.Flag{jsonFlag("write the processes as a JSON array")},
	}
}
