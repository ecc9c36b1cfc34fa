package main

import (
	"bufio"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
)

const (
	flagYes          = "yes"
	flagExecutable   = "allow-executable-config"
	flagInstructions = "allow-instructions"
)

func applyCommand() command {
	return command{
		task: "change", runs: completeAll, usage: "write a run's workspace changes back to the host",
		verbs: []verb{{line: "clove apply [--yes] [--allow-executable-config] [--allow-instructions] [--json] NAME|ID [PATH...]\nclove apply [OPTION...] [--to DIR] lost/ID [PATH...]", act: of(workspace.apply)}},
		description: "Shows the changes and asks first. Files that the host changed since the run began are left as they are.\n" +
			"Shown apart, and written only after a yes of their own: what programs of the host execute by themselves, as git hooks,\n" +
			"and new dot-folders that look like it (or --allow-executable-config); instructions for the next agent, as AGENTS.md\n" +
			"(or --allow-instructions). --yes alone leaves all three out.\n" +
			"A PATH chooses what is written: a file or folder as clove diff lists it, or relative to /workspace.\n" +
			"Exit status 1: something was refused, or you said no.\n" +
			"With cloved, changes are written with your own rights. The run need not have ended: it is frozen meanwhile.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: flagYes, Aliases: []string{"y"}, Usage: "do not ask", DisableDefaultText: true},
			&cli.BoolFlag{Name: flagExecutable, Usage: "also write what the host executes by itself, or may", DisableDefaultText: true},
			&cli.BoolFlag{Name: flagInstructions, Usage: "also write instructions for the next agent", DisableDefaultText: true},
			toFlag("write lost/ID to this directory, not to its workspace"),
			jsonFlag("write what was done as a JSON array"),
		},
	}
}

// apply asks on the terminal. Without one it refuses unless --yes was given: an answer
// is never guessed.
func (p workspace) apply(c *cli.Context) error {
	to, err := directory(c)
	if err != nil {
		return err
	}
	d, b, err := p.either(c)
	if err != nil {
		return err
	}
	given := runtime.Consent{Apply: c.Bool(flagYes), ExecutableConfig: c.Bool(flagExecutable), Instructions: c.Bool(flagInstructions)}
	// Nothing to ask about is not a refusal: without changes, confirm is not called.
	asked, agreed, silent := false, false, false
	confirm := func(changes []rootfs.Change) runtime.Consent {
		consent := given
		if silent = !consent.Apply && !isTerminal(p.in); silent {
			return runtime.Consent{}
		}
		if !consent.Apply {
			consent = confirm(p.screen, changes, given)
		}
		asked, agreed = true, consent.Apply
		return consent
	}
	// cloved writes with the caller's own rights and can pause a run that executes.
	// Without cloved root writes, and only to an ended run.
	var changes []rootfs.Change
	if d != nil {
		defer d.Close()
		params := api.ApplyParams{RunParams: api.RunParams{Run: c.Args().First()}, To: to, AllowExecutableConfig: given.ExecutableConfig,
			AllowInstructions: given.Instructions, Paths: insidePaths(c.Args().Tail())}
		changes, err = applyBy(c.Context, d, params, given, confirm)
	} else {
		changes, err = b.Apply(c.Args().First(), to, insidePaths(c.Args().Tail()), confirm)
	}
	if err != nil {
		if len(changes) > 0 { // what was applied before the failure
			printChanges(p.screen, c.Bool(flagJSON), changes)
		}
		return err
	}
	if silent {
		return invalid(flagYes, "look at the changes with clove diff, then give --yes", "there is no terminal to ask on")
	}
	return applied(p.screen, c, changes, asked && !agreed)
}

// applyBy lets cloved write what confirm agrees to, and nothing that has changed since
// it was shown.
func applyBy(ctx context.Context, d *client.Client, params api.ApplyParams, given runtime.Consent, confirm func([]rootfs.Change) runtime.Consent) (done []rootfs.Change, err error) {
	// With --yes nothing is shown first, so one call does it.
	if given.Apply {
		_, err = client.Each(ctx, d, methods.RunApply, params, collect(&done))
		return done, err
	}
	var found []rootfs.Change
	seen, err := client.Each(ctx, d, methods.RunDiff, api.DiffParams{RunParams: params.RunParams, To: params.To}, collect(&found))
	if err != nil {
		return nil, err
	}
	found = ofWorkspace(found)
	if found, err = runtime.ChosenOf(found, params.Paths); err != nil {
		return nil, err
	}
	if len(found) > 0 {
		consent := confirm(found)
		if !consent.Apply {
			return nil, nil
		}
		params.AllowExecutable = consent.Each
	}
	// cloved compares it with the changes that it finds now: a running agent may have
	// written between the question and the answer.
	params.Digest = seen.Digest
	_, err = client.Each(ctx, d, methods.RunApply, params, collect(&done))
	return done, err
}

// ofWorkspace are the changes that can be applied: only the workspace and its repository have a counterpart on the host.
func ofWorkspace(changes []rootfs.Change) []rootfs.Change {
	return slices.DeleteFunc(changes, func(c rootfs.Change) bool {
		return !strings.HasPrefix(c.Path, agent.WorkspaceDir+"/") && c.Type != rootfs.TypeRef
	})
}

// insidePaths are paths of the workspace as they are inside.
func insidePaths(given []string) (paths []string) {
	for _, at := range given {
		if !path.IsAbs(at) {
			at = path.Join(agent.WorkspaceDir, at)
		}
		paths = append(paths, path.Clean(at))
	}
	return paths
}

// applied reports the outcome. Refused changes make the exit status 1, and so does a
// no: a script must notice both.
func applied(s *screen, c *cli.Context, changes []rootfs.Change, declined bool) error {
	if err := printChanges(s, c.Bool(flagJSON), changes); err != nil {
		return err
	}
	refused := slices.ContainsFunc(changes, func(change rootfs.Change) bool { return change.Refused != "" })
	switch {
	case declined:
		s.say("clove", cyan, "nothing was applied")
		return exitStatus(exitFailed)
	case refused:
		s.report(&agent.Error{Kind: agent.KindConflict, Step: "apply", Message: "some changes were refused",
			Hint: strings.Join(append([]string{"the list above says why"}, withheldHints(changes)...), "; ")})
		return exitStatus(exitFailed)
	case len(changes) == 0:
		s.say("clove", cyan, "there is nothing to apply")
	}
	return nil
}

// apartClass is how changes of one class are shown apart.
type apartClass struct {
	class   rootfs.Class
	heading string
	flag    string // writes them all
	noun    string
}

// apartClasses are in the order in which they are shown.
var apartClasses = []apartClass{
	{rootfs.ClassExecutable, "Programs of the host execute these by themselves, for example when you work in that folder:", flagExecutable, "for the host to execute"},
	{rootfs.ClassInstructions, "The next agent that works in the folder follows these:", flagInstructions, "instructions for the next agent"},
	{rootfs.ClassUnknown, "A program of the host that clove does not know may execute these:", flagExecutable, "unknown"},
}

// withheldHints counts, for each class, what was left out, and names the flag that writes it.
func withheldHints(changes []rootfs.Change) (hints []string) {
	for _, a := range apartClasses {
		count := 0
		for _, change := range changes {
			if change.Refused != "" && change.Class() == a.class {
				count++
			}
		}
		if count > 0 {
			hints = append(hints, fmt.Sprintf("left out: %d %s; look at them, then give --%s", count, a.noun, a.flag))
		}
	}
	return hints
}

// confirm shows the changes and takes only a clear yes for them, then one for each change that
// needs consent of its own: a yes to a hundred files must not include a Git hook among them. It
// asks on stderr, because stdout is for what was done.
func confirm(s *screen, changes []rootfs.Change, given runtime.Consent) runtime.Consent {
	// One reader for all questions: it may read more than one line at a time.
	answers := bufio.NewReader(s.in)
	byClass := apart(changes)
	allowed := map[string]bool{flagExecutable: given.ExecutableConfig, flagInstructions: given.Instructions}
	plain := byClass[""]
	for _, a := range apartClasses {
		if allowed[a.flag] {
			plain = append(plain, byClass[a.class]...)
			delete(byClass, a.class)
		}
	}
	for _, change := range plain {
		fmt.Fprintln(s.err, change)
	}
	consent := given
	consent.Apply = len(plain) == 0 || yes(s, answers, fmt.Sprintf("apply %d to the host?", len(plain)))
	for _, a := range apartClasses {
		if consent.Apply && len(byClass[a.class]) > 0 {
			fmt.Fprintln(s.err, a.heading)
			consent.Each = append(consent.Each, confirmEach(s, answers, byClass[a.class])...)
		}
	}
	return consent
}

// confirmEach asks for each change, and once for all of an unknown folder: a part of one is of
// no use.
func confirmEach(s *screen, answers *bufio.Reader, changes []rootfs.Change) (agreed []string) {
	for len(changes) > 0 {
		alike := 1
		for changes[0].Unknown != "" && alike < len(changes) && changes[alike].Unknown == changes[0].Unknown {
			alike++
		}
		question, group := ": apply it?", changes[:alike]
		for _, change := range group[:alike-1] {
			fmt.Fprintln(s.err, change)
			question = fmt.Sprintf(": apply these %d?", alike)
		}
		if yes(s, answers, group[alike-1].String()+question) {
			for _, change := range group {
				agreed = append(agreed, change.Path)
			}
		}
		changes = changes[alike:]
	}
	return agreed
}

// yes asks one question. Anything but a clear yes, and the end of the input, is a no.
func yes(s *screen, answers *bufio.Reader, question string) bool {
	fmt.Fprint(s.err, question+" [y/N] ")
	answer, _ := answers.ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}
