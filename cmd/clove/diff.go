package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
)

func (p *program) diffCommand() *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "list the files that a run changed", UsageText: "clove diff [--json] NAME|ID",
		Description: "A added, C changed, D deleted. Files below /workspace are those that clove apply can write back;\n" +
			"those that a program of the host's executes by itself, as git does a hook, or that the next agent follows, come last\nand say so.\n" +
			"A run that executes stands still while it is read; that takes cloved.",
		Flags:  []cli.Flag{jsonFlag("write the changes as a JSON array")},
		Action: ofOneRun(p.diff),
	}
}

// diff needs cloved for a run that executes: only the run's supervisor can freeze it
// while its layer is read.
func (p *program) diff(c *cli.Context) error {
	d, b, err := p.either(c)
	if err != nil {
		return err
	}
	var changes []rootfs.Change
	if d != nil {
		defer d.Close()
		_, err = d.Diff(c.Context, c.Args().First(), collect(&changes))
	} else {
		changes, err = b.Diff(c.Args().First())
	}
	if err != nil {
		return err
	}
	return p.printChanges(c.Bool(flagJSON), changes)
}

// collect converts the changes that cloved sends to the type that clove prints.
func collect(changes *[]rootfs.Change) func(agent.Change) error {
	return func(c agent.Change) error {
		*changes = append(*changes, rootfs.Change{Kind: rootfs.ChangeKind(c.Kind), Path: c.Path, Type: rootfs.FileType(c.Type), Size: c.Size,
			Mode: c.Mode, Target: c.Target, Was: rootfs.FileType(c.Was), ExecutedBy: c.ExecutedBy, Instructs: c.Instructs, Unknown: c.Unknown, Refused: c.Refused})
		return nil
	}
}

func (p *program) printChanges(asJSON bool, changes []rootfs.Change) error {
	if asJSON {
		return p.printJSON(append([]rootfs.Change{}, changes...)) // [] for none, not null
	}
	// What needs consent of its own comes last, where it is seen.
	byClass := apart(changes)
	list := byClass[""]
	for _, a := range apartClasses {
		list = append(list, byClass[a.class]...)
	}
	for _, change := range list {
		if _, err := fmt.Fprintln(p.out, change); err != nil {
			return err
		}
	}
	return nil
}

// apart separates the changes by the consent that they need, "" for those that the host only
// keeps.
func apart(changes []rootfs.Change) map[rootfs.Class][]rootfs.Change {
	byClass := map[rootfs.Class][]rootfs.Change{}
	for _, change := range changes {
		byClass[change.Class()] = append(byClass[change.Class()], change)
	}
	return byClass
}
