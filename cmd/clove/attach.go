package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func attachCommand() command {
	return command{
		task: "run", runs: completeLive, usage: "join the streams of a detached run",
		verbs: []verb{{line: "clove attach [--detach-keys KEYS] [--clipboard] NAME|ID", act: of(sessions.attach)}},
		description: "Shows its output from now on. Input reaches only a run that was started with -i. ctrl-p ctrl-q on a terminal leaves\n" +
			"without ending the run, and so does ctrl-c where the run has no terminal of its own; keys that end in a letter take\n" +
			"Enter then. Exit status: the agent's, 0 after leaving by keys.",
		flags: []cli.Flag{detachKeysFlag(), boolean("", flagClipboard, "", clipboardUsage)},
	}
}

// detachKeysFlag has docker's default.
func detachKeysFlag() cli.Flag {
	return &cli.StringFlag{Name: flagDetachKeys, Usage: "keys that leave, such as ctrl-p,ctrl-q or ctrl-x,d", Value: "ctrl-p,ctrl-q"}
}

// attach first asks what the run has: only for a run with a terminal of its own the
// caller's is made raw. ctrl-c is then a key like any other.
func (p sessions) attach(c *cli.Context) error {
	keys, err := parseKeys(c.String(flagDetachKeys))
	if err != nil {
		return err
	}
	p.displayFor(c)
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	found, err := client.Do(c.Context, d, methods.RunGet, api.RunParams{Run: c.Args().First()})
	if err != nil {
		return err
	}
	t, err := p.openTerminal(found.Run.Spec.Terminal, keys)
	if err != nil {
		return err
	}
	defer t.restore()
	session, err := client.Open(c.Context, d, methods.RunAttach, api.AttachParams{RunParams: api.RunParams{Run: c.Args().First()}, Size: t.size()})
	if err != nil {
		return err
	}
	defer t.follow(session)()
	// The end of this input does not end the agent's: another client may attach later.
	go p.feed(session, keys, nil)
	var result api.AttachResult
	if err := session.Answer(c.Context, &result, func(piece api.SessionOutput) error {
		if piece.Asked == nil {
			return p.showOrLose(piece)
		}
		if !found.Run.Spec.Terminal { // or it would be drawn over the agent's program
			launcher(p).reportAsked(c.Context, *piece.Asked)
		}
		return nil
	}); err != nil {
		return err
	}
	// Leaving by keys is a success, whatever the agent does later.
	if !result.Detached && result.ExitCode != 0 {
		return exitStatus(result.ExitCode)
	}
	return nil
}
