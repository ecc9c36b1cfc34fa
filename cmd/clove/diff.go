package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/cmd/clove/verbs"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
)

// workspace has the commands about the files of a run.
type workspace program

func diffCommand() command {
	return command{
		task: "look", runs: completeAll, usage: "list the files that a run changed, or show what changed in them",
		verbs: []verb{{line: "clove diff [--json] NAME|ID [PATH...]\nclove diff [--json] [--to DIR] lost/ID [PATH...]", act: of(workspace.diff)}},
		description: "A added, C changed, D deleted, R renamed with all that is in it. Files below /workspace are those that clove apply can write back;\n" +
			"those that a program of the host's executes by itself, as git does a hook, or that the next agent follows, come last\nand say so. A branch with \"-> COMMIT\" is that of a workspace whose .git is a file: clove apply takes the commits over.\n" +
			"With a PATH, a file or folder as clove diff lists it, or relative to /workspace: as a patch of git's (git apply -p2), without\n" +
			"files over 1 MiB. On a terminal, control characters are escaped.\n" +
			"A run that executes stands still while it is read; that takes cloved.\n" +
			"lost/ID is a layer that the store has no record of (clove check lists them); it opens for the run's owner.",
		flags: []cli.Flag{toFlag("compare lost/ID with this directory, not with its workspace"), jsonFlag("write the changes as a JSON array")},
	}
}

// diff needs cloved for a run that executes: only the run's supervisor can freeze it
// while its layer is read.
func (p workspace) diff(c *cli.Context) error {
	to, err := directory(c)
	if err != nil {
		return err
	}
	paths := insidePaths(c.Args().Tail())
	changes, err := p.changes(c, c.Args().First(), to, paths)
	if err != nil {
		return err
	}
	if len(changes) == 0 && !c.Bool(flagJSON) {
		p.none("the run changed no files")
	}
	if len(paths) == 0 || c.Bool(flagJSON) {
		return printChanges(p.screen, c.Bool(flagJSON), changes)
	}
	return p.printPatches(changes)
}

// changes are those of a run, from cloved or without it.
func (p workspace) changes(c *cli.Context, run, to string, paths []string) (changes []rootfs.Change, err error) {
	d, b, err := p.either(c)
	switch {
	case err != nil:
	case d != nil:
		defer d.Close()
		_, err = client.Each(c.Context, d, methods.RunDiff, api.DiffParams{RunParams: api.RunParams{Run: run}, To: to, Paths: paths, ListOnly: true}, collect(&changes))
	default:
		changes, err = b.Diff(run, to, paths)
	}
	return changes, err
}

// printPatches writes one patch after the other: each is at most a few MiB.
func (s *screen) printPatches(changes []rootfs.Change) error {
	for _, change := range listed(changes) {
		text := patch(change)
		if isTerminal(s.out) {
			text = printableText(text)
		}
		if _, err := io.WriteString(s.out, text); err != nil {
			return err
		}
	}
	return nil
}

func toFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: flagTo, Usage: usage + " `DIR`"}
}

// directory is the canonical path that --to names; empty without it.
func directory(c *cli.Context) (string, error) {
	if !c.IsSet(flagTo) {
		return "", nil
	}
	path, err := filepath.Abs(c.String(flagTo))
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagTo, Message: "cannot use " + c.String(flagTo), Hint: "name a directory of the host", Err: err}
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", invalid(flagTo, "name a directory of the host", "%s is not a directory", c.String(flagTo))
	}
	return path, nil
}

// collect converts the changes that cloved sends to the type that clove prints.
func collect(changes *[]rootfs.Change) func(api.ChangeNote) error {
	return func(note api.ChangeNote) error {
		*changes = append(*changes, changeOf(note.Change))
		return nil
	}
}

// changeOf is a change of cloved's as clove prints it.
func changeOf(c agent.Change) rootfs.Change {
	return rootfs.Change{Kind: rootfs.ChangeKind(c.Kind), Path: string(c.Path), Type: rootfs.FileType(c.Type), Size: c.Size,
		Mode: c.Mode, Target: string(c.Target), Was: rootfs.FileType(c.Was), From: string(c.From), ExecutedBy: c.ExecutedBy, Instructs: c.Instructs, Unknown: c.Unknown,
		Lost: c.Lost, Refused: c.Refused, Contents: (*rootfs.Contents)(c.Contents)}
}

func printChanges(s *screen, asJSON bool, changes []rootfs.Change) error {
	if asJSON {
		return s.printJSON(runtime.ChangesOf(changes)) // [] for none, not null
	}
	return s.printLines(verbs.Items(listed(changes)))
}

// listed are changes for people: those that need consent of their own come last, where it is seen.
func listed(changes []rootfs.Change) []rootfs.Change {
	byClass := apart(changes)
	list := byClass[""]
	for _, a := range apartClasses {
		list = append(list, byClass[a.class]...)
	}
	return list
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
