package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

func cpCommand() command {
	return command{
		task: "run", usage: "copy files into and out of a run",
		verbs: []verb{{line: "clove cp NAME:PATH FILE|DIR|-\nclove cp FILE|DIR|- NAME:PATH", act: of(workspace.copy), free: true}},
		description: "Out: to a new name, or into a directory that exists. In: into a directory that exists inside, or to a name in one.\n" +
			"- is a tar archive on stdout or stdin. Files that are copied in are the agent's.\n" +
			"A run that has ended has only what it made or changed, and takes nothing in: clove diff NAME lists it.",
	}
}

// place is one side of a copy: a path in a run or on the host.
type place struct {
	run, path string // run is empty on the host
}

// parsePlace tells NAME:PATH from a path of the host as docker does: a colon behind a
// slash belongs to a path. The exception is UID/NAME:/PATH, root's name for another
// user's run.
func parsePlace(text string) place {
	run, path, found := strings.Cut(text, ":")
	_, err := agent.ParseRunName(run, 0)
	if !found || run == "" || run == "." || err != nil || strings.Contains(run, "/") && !strings.HasPrefix(path, "/") {
		return place{path: text}
	}
	return place{run: run, path: path}
}

// copy takes only absolute paths inside: a run has no current directory of the caller's.
func (p workspace) copy(c *cli.Context) error {
	if c.NArg() != 2 {
		return invalid("", "clove cp NAME:/workspace/FILE . takes one out, clove cp FILE NAME:/workspace puts one in", "it takes two places, not %d", c.NArg())
	}
	from, to := parsePlace(c.Args().Get(0)), parsePlace(c.Args().Get(1))
	// As with docker cp, one side is the host's.
	if (from.run == "") == (to.run == "") {
		return invalid("", "write NAME:/workspace/FILE for the one inside", "one place is inside a run, the other is not")
	}
	if inside := from.path + to.path; from.run != "" && !strings.HasPrefix(from.path, "/") || to.run != "" && !strings.HasPrefix(to.path, "/") || inside == "" {
		return invalid("", "write an absolute path inside, for example NAME:/workspace/out", "a path inside begins with /")
	}
	if from.run != "" {
		return p.misspelled(c, from.run, p.takeOut(c, from, to.path))
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	return p.misspelled(c, to.run, copyIn(c.Context, p.screen, d, from.path, to))
}

// misspelled adds the run that was probably meant where the run does not exist: a path of either side
// may be what does not.
func (p workspace) misspelled(c *cli.Context, run string, err error) error {
	if agent.KindOf(err) != agent.KindNotFound {
		return err
	}
	if _, missing := p.stored(c, run); agent.KindOf(missing) == agent.KindNotFound {
		return program(p).nearRun(c, run, missing)
	}
	return err
}

// takeOut copies from a run to the host.
func (p workspace) takeOut(c *cli.Context, from place, to string) error {
	send, done, err := p.sender(c, from.run)
	if err != nil {
		return err
	}
	defer done()
	folder, err := copyOut(c.Context, p.screen, send, from.path, to)
	if err == nil && folder {
		p.sayPartial(c, from)
	}
	return err
}

// sayPartial says that a folder of a run at rest may lack files: the copy looks complete.
func (p workspace) sayPartial(c *cli.Context, from place) {
	run, err := p.stored(c, from.run)
	if err == nil && (run.State == agent.StateEnded || run.State == agent.StateQueued) {
		p.say("clove", cyan, from.run+" has ended: the copy of "+from.path+" has what it made or changed there, and not what it left as it was")
	}
}
