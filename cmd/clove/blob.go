package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api/methods"
)

func blobCommand() command {
	return command{
		task: "share", usage: "list bodies that are kept apart, and write one to the output",
		verbs: []verb{
			{line: "clove blob ls [--owner UID] [--json]", act: list(methods.BlobList).columns("SHA256", "OWNER", "BYTES", "REFERENCES", "MADE")},
			{line: "clove blob get [--owner UID] SHA256", act: blobCall()},
		},
		description: "A blob is a body of up to 64 MiB that a message or a key names by its SHA-256. ls has yours with the number of messages, keys\n" +
			"and uploads of the last hour that refer to each: one to which nothing refers is removed by itself, so there is no command\n" +
			"for it. clove mail send --file and clove state set --file make some. Root sees those of all users.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagOwner, Usage: "the blobs of this user ID; for root"},
			jsonFlag("ls: write a JSON array"),
		},
	}
}
