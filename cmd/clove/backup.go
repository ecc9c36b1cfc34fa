package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func backupCommand() command {
	return command{
		task: "administer", usage: "write a sound copy of the records to a file",
		verbs: []verb{{line: "clove backup FILE", act: reaches(backup), free: true}},
		description: "While everything runs. FILE is a copy of clove.db, and FILE.kernel, where there is a kernel.db, of that, with the\n" +
			"blobs that it names in FILE.kernel.blobs: they belong together. The layers of ended runs and the logs are not in them: they are files below --root.\n" +
			"To go back, stop cloved and the agents and put the copies in the places of clove.db, kernel.db and blobs.",
	}
}

// backup copies both files while everything runs. cloved has kernel.db open for as long
// as it lives, so it makes that copy itself.
func backup(a *access, c *cli.Context) error {
	if c.NArg() != 1 || c.Args().First() == "" {
		return &agent.Error{Kind: agent.KindInvalid, Step: "backup", Message: fmt.Sprintf("it takes one file, not %d", c.NArg()), Hint: "clove backup FILE"}
	}
	to, err := filepath.Abs(c.Args().First())
	if err != nil {
		return err
	}
	b, err := a.backend(c)
	if err != nil {
		return err
	}
	if err := b.Backup(to); err != nil {
		return err
	}
	// In this order: the reservation of a run is in kernel.db before the run is in
	// clove.db, so a run in the copies has its reservation. One without a run is
	// released when cloved starts.
	err = a.onKernel(c, func() error { return b.BackupKernel(to + kernelSuffix) },
		func(d *client.Client) error {
			return client.Perform(c.Context, d, methods.Backup, api.BackupParams{File: to + kernelSuffix})
		})
	if err != nil {
		return errors.Join(err, os.Remove(to)) // one without the other is no backup
	}
	return nil
}

// kernelSuffix follows a backup's name in that of the copy of kernel.db.
const kernelSuffix = ".kernel"

// onKernel uses kernel.db itself, or asks cloved to, which has the file for as long as
// it lives.
func (a *access) onKernel(c *cli.Context, own func() error, ask func(*client.Client) error) error {
	err := own()
	if err == nil || agent.KindOf(err) != agent.KindBusy {
		return err
	}
	d, unreached := a.cloved(c)
	if unreached != nil {
		return err // it names the process that has the file
	}
	defer d.Close()
	return ask(d)
}
