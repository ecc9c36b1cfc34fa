package main

import (
	"archive/tar"
	"context"
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

func catCommand() command {
	return command{
		task: "look", runs: completeAll, usage: "write files of a run to stdout",
		verbs: []verb{{line: "clove cat NAME|ID PATH...", act: of(workspace.cat)}},
		description: "PATH is absolute inside, or relative to /workspace. A run that has ended has only what it made or changed: clove diff NAME\n" +
			"lists it. On a terminal, sequences that make it type or disclose something are left out, as clove logs does.",
	}
}

// sender writes a path of one run as a tar archive.
type sender func(ctx context.Context, inside string, to io.Writer) error

// sender asks cloved, or without it the store, which has runs at rest.
func (p workspace) sender(c *cli.Context, run string) (send sender, done func(), err error) {
	d, b, err := p.either(c)
	if err != nil {
		return nil, nil, err
	}
	if d == nil {
		return func(ctx context.Context, inside string, to io.Writer) error { return b.CopyKept(ctx, run, inside, to) }, func() {}, nil
	}
	return func(ctx context.Context, inside string, to io.Writer) error { return d.CopyOut(ctx, run, inside, to) }, func() { d.Close() }, nil
}

func (p workspace) cat(c *cli.Context) error {
	send, done, err := p.sender(c, c.Args().First())
	if err != nil {
		return err
	}
	defer done()
	p.displayFor(c)
	for _, inside := range insidePaths(c.Args().Tail()) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(send(c.Context, inside, writer)) }()
		err := catOne(reader, inside, p.display(p.out))
		reader.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// catOne writes the file that an archive has.
func catOne(from io.Reader, inside string, to io.Writer) error {
	archive := tar.NewReader(from)
	header, err := archive.Next()
	switch {
	case err != nil:
		return err
	case header.Typeflag == tar.TypeSymlink:
		return invalid("", "name what it leads to", "%s is a link to %s", inside, header.Linkname)
	case header.Typeflag != tar.TypeReg:
		return invalid("", "clove cp copies folders", "%s is a folder", inside)
	}
	if _, err := io.Copy(to, archive); err != nil {
		return err
	}
	// The sender reports a failure only behind the archive's end.
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return &agent.Error{Kind: agent.KindConflict, Message: "cannot read " + inside + " to its end", Err: err}
	}
	_, err = io.Copy(io.Discard, from)
	return err
}
