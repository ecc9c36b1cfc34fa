package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/runtime"
)

func checkCommand() command {
	return command{
		task: "administer", usage: "compare store, processes, cgroups, mounts and directories",
		verbs: []verb{{line: "clove check [--json]", act: by(checkHost)}},
		description: "Exit status 0 when everything agrees, else 1 and the list. clove gc removes what is left over.\n" +
			"Notes, which do not change the status: what is kept below lost/, because the store has no record of it,\n" +
			"and files for a child whose run is not there, which cloved uses or removes when it starts.",
		flags: []cli.Flag{jsonFlag("write the problems as a JSON array")},
	}
}

// checkHost reports what does not agree, and exits with 1 if there is anything.
func checkHost(p program, c *cli.Context) error {
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	problems, err := b.Check()
	if err != nil {
		return err
	}
	kernel, err := kernelProblems(p.access, c, b)
	if err != nil {
		return err
	}
	problems = append(problems, kernel...)
	if err := printProblems(p.screen, c.Bool(flagJSON), problems); err != nil {
		return err
	}
	if slices.ContainsFunc(problems, func(p runtime.Problem) bool { return !p.Note }) {
		return exitStatus(exitFailed)
	}
	return nil
}

// kernelProblems checks kernel.db, or lets cloved check it while it has the file.
func kernelProblems(a *access, c *cli.Context, b backend) (problems []runtime.Problem, err error) {
	var texts []string
	err = a.onKernel(c, func() (err error) { texts, err = b.CheckKernel(); return err },
		func(d *client.Client) error {
			answer, err := client.Do(c.Context, d, methods.Check, api.Nothing{})
			texts = answer.Problems
			return err
		})
	for _, text := range texts {
		problems = append(problems, runtime.Problem{Kind: runtime.ProblemStore, Subject: runtime.Paths{State: c.String(flagRoot)}.Kernel(), Message: text})
	}
	return problems, err
}

// printProblems prints nothing for people if there are none; JSON is then an empty
// list.
func printProblems(s *screen, asJSON bool, problems []runtime.Problem) error {
	if asJSON {
		return s.printJSON(append([]runtime.Problem{}, problems...))
	}
	if len(problems) == 0 {
		s.none("nothing was found")
	}
	var rows [][]string
	for _, problem := range problems {
		rows = append(rows, []string{problem.Kind, problem.Subject, problem.Message})
	}
	return printTable(s.out, rows)
}
