package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/internal/bundle"
)

const flagArchive = "output"

// debugVerbs are those of clove debug.
type debugVerbs program

func debugCommand() command {
	return command{
		task: "administer", usage: "collect the state of clove in one file, for a bug report",
		verbs: []verb{{line: "clove debug [-o FILE]\nclove debug store [--json] [NAME|ID]", act: of(debugVerbs.collect), free: true}},
		description: "Writes one .tar.gz: what cloved and the supervisors do, runs, queue, store, host, versions. It works without cloved,\n" +
			"too, and lists in its README.txt what could not be collected. Values of environments and labels, arguments of commands,\n" +
			"files and what agents wrote are never in it. debug store shows the store's file, or one run as it is stored.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagArchive, Aliases: []string{"o"}, Usage: "`FILE` to write, which must not exist; - is stdout", DefaultText: "clove-debug-TIME.tar.gz"},
			jsonFlag("debug store: write one JSON object"),
		},
	}
}

// collect writes the archive part by part. A part that cannot be obtained is reported and
// left out, because the command is for machines on which something is wrong. Only a
// file that cannot be written is a failure; it is removed then.
func (p debugVerbs) collect(c *cli.Context) error {
	if c.Args().First() == "store" {
		return p.store(c)
	}
	if err := noArguments(c); err != nil {
		return err
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	// UTC: the archive may be read in another time zone.
	now := time.Now().UTC()
	name := "clove-debug-" + now.Format("20060102-150405")
	out, path, err := debugOutput(p.screen, c.String(flagArchive), name+".tar.gz")
	if err != nil {
		return err
	}
	missing, err := bundle.Write(c.Context, out, name, debugIntro+"Made "+now.Format(time.RFC3339)+" by clove "+version+".\n\n", p.parts(c, b))
	// A close may report the error of an earlier write.
	if out != p.out {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}
	if err != nil {
		return agent.Failed("debug", err)
	}
	for _, m := range missing {
		p.say("clove", cyan, fmt.Sprintf("%s is missing: %v", m.Name, m.Why))
	}
	if out != p.out {
		fmt.Fprintln(p.out, path)
	}
	return nil
}

// debugIntro begins the archive's README.txt, so that the sender of the archive knows
// its content.
const debugIntro = `The state of this clove. Left out: values of environments and labels, arguments of commands, seccomp
documents, what agents asked for that was denied, their files, and all that they wrote.
`

// debugOutput opens the archive's file. Only root can read it. O_EXCL, so that no file
// or link that another user prepared is written to.
func debugOutput(s *screen, path, standard string) (*os.File, string, error) {
	switch path {
	case "-":
		return s.out, "", nil
	case "":
		path = standard
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", &agent.Error{Kind: agent.KindInvalid, Step: "--output", Message: "cannot make the file", Err: err, Hint: "name another with -o"}
	}
	return file, path, nil
}

// store shows the store's file, or one run as it is stored, without secrets.
func (p debugVerbs) store(c *cli.Context) error {
	if c.NArg() > 2 {
		return &agent.Error{Kind: agent.KindInvalid, Step: "debug store", Message: fmt.Sprintf("it takes one run, not %d", c.NArg()-1), Hint: "clove debug store [NAME|ID]"}
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	if ref := c.Args().Get(1); ref != "" {
		stored, err := b.StoredRun(ref)
		if err != nil {
			return err
		}
		shown, err := bundle.Redact(stored)
		if err != nil {
			return agent.Failed("store", err)
		}
		_, err = p.out.Write(shown)
		return err
	}
	o, err := b.StoreOverview()
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(o)
	}
	fmt.Fprintf(p.out, "%s: %d bytes, schema %d (this clove: %d), revision %d, pages of %d\n", o.Path, o.Bytes, o.Schema, o.Newest, o.Revision, o.PageSize)
	return p.printList(c, o.Buckets)
}

// asJSON is a part that is a JSON document.
func asJSON(look func() (any, error)) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		value, err := look()
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		err = writeIndented(&text, value)
		return text.Bytes(), err
	}
}
