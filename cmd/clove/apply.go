package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/client"
	"clove.run/clove/rootfs"
)

const flagYes = "yes"

func (p *program) applyCommand() *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "write a run's workspace changes back to the host", UsageText: "clove apply [--yes] [--json] NAME|ID",
		Description: "Shows the changes and asks first. What the host changed since the run began is left as it is.\nExit status 1: something was refused, or you said no.\n" +
			"With cloved it is written with your own rights, and the run may go on executing: it stands still meanwhile.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: flagYes, Aliases: []string{"y"}, Usage: "do not ask", DisableDefaultText: true},
			jsonFlag("write what was done as a JSON array"),
		},
		Action: p.apply,
	}
}

// apply refuses to guess an answer: without a terminal --yes must say it.
func (p *program) apply(c *cli.Context) error {
	reference, err := oneReference(c)
	if err != nil {
		return err
	}
	if !c.Bool(flagYes) && !isTerminal(p.in) {
		return invalid(flagYes, "look at the changes with clove diff, then give --yes", "there is no terminal to ask on")
	}
	d, b, err := p.either(c)
	if err != nil {
		return err
	}
	asked, agreed := false, false
	confirm := func(changes []rootfs.Change) bool {
		asked, agreed = true, c.Bool(flagYes) || p.confirm(changes)
		return agreed
	}
	var changes []rootfs.Change
	if d != nil {
		defer d.Close()
		changes, err = applyBy(c.Context, d, reference, c.Bool(flagYes), confirm)
	} else {
		changes, err = b.Apply(reference, confirm)
	}
	if err != nil {
		if len(changes) > 0 { // the part that was done before it
			p.printChanges(c.Bool(flagJSON), changes)
		}
		return err
	}
	return p.applied(c, changes, asked && !agreed)
}

// applyBy has cloved write what confirm agrees to, and nothing that came since.
func applyBy(ctx context.Context, d *client.Client, reference string, yes bool, confirm func([]rootfs.Change) bool) (done []rootfs.Change, err error) {
	if yes {
		_, err = d.Apply(ctx, reference, "", collect(&done))
		return done, err
	}
	var found []rootfs.Change
	seen, err := d.Diff(ctx, reference, collect(&found))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(c rootfs.Change) bool { return !strings.HasPrefix(c.Path, agent.WorkspaceDir+"/") })
	if len(found) > 0 && !confirm(found) {
		return nil, nil
	}
	_, err = d.Apply(ctx, reference, seen.Digest, collect(&done))
	return done, err
}

// applied reports the outcome; a refused change is not a success.
func (p *program) applied(c *cli.Context, changes []rootfs.Change, declined bool) error {
	if err := p.printChanges(c.Bool(flagJSON), changes); err != nil {
		return err
	}
	refused := slices.ContainsFunc(changes, func(change rootfs.Change) bool { return change.Refused != "" })
	switch {
	case declined:
		p.say("clove", cyan, "nothing was applied")
		return exitStatus(exitFailed)
	case refused:
		p.report(&agent.Error{Kind: agent.KindConflict, Step: "apply", Message: "some changes were refused", Hint: "the list above says why"})
		return exitStatus(exitFailed)
	case len(changes) == 0:
		p.say("clove", cyan, "there is nothing to apply")
	}
	return nil
}

// confirm shows the changes and takes only a clear yes for one. It asks on
// stderr: stdout is for what was done.
func (p *program) confirm(changes []rootfs.Change) bool {
	for _, change := range changes {
		fmt.Fprintln(p.err, change)
	}
	fmt.Fprintf(p.err, "apply %d to the host? [y/N] ", len(changes))
	answer, _ := bufio.NewReader(p.in).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}
