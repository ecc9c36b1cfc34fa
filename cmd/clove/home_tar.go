package main

import (
	"cmp"
	"os"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/policies/settings"
)

// tar runs in a sandbox with the home, so that clove reads neither what is in the home nor what is in
// the archive.

// exportHome writes the home of this folder as a tar.
func (p program) exportHome(c *cli.Context) error {
	name := c.Args().Get(1)
	if isTerminal(p.out) {
		return invalid("", "write it to a file: clove home export "+name+" > "+name+".tar", "a tar is nothing for a terminal")
	}
	folder := c.Args().Get(2)
	if home, found, err := p.homeHere(c, name); err != nil {
		return err
	} else if found && folder != "" && !slices.Contains(home.Keep, folder) {
		return &agent.Error{Kind: agent.KindNotFound, Message: "no folder " + folder + " is kept with the home " + name, Hint: "`clove home ls` lists them"}
	} else if !found {
		return &agent.Error{Kind: agent.KindNotFound, Message: "this folder has no kept home " + name, Hint: "`clove home ls` lists them; go to its folder"}
	}
	// Holes stay holes: a file with them can be larger than the home, and than the host's disk.
	return p.inHome(c, name, nil, "tar", "-C", cmp.Or(folder, agent.HomeDir), "--sparse", "-cf", "-", ".")
}

// importHome adds the files of a tar to the home of this folder.
func (p program) importHome(c *cli.Context) error {
	name := c.Args().Get(1)
	if isTerminal(p.in) {
		return invalid("", "read it from a file: clove home import "+name+" < "+name+".tar", "there is no tar on a terminal")
	}
	if home, _, err := p.homeHere(c, name); err != nil {
		return err
	} else if home.InUse {
		return &agent.Error{Kind: agent.KindConflict, Message: "a run has the kept home " + name, Hint: "stop the run first"}
	}
	return p.inHome(c, name, []string{"-i"}, "tar", "-C", cmp.Or(c.Args().Get(2), agent.HomeDir), "--no-same-owner", "-xf", "-")
}

// inHome runs a command with the home, and the kept folder that the line names, in a sandbox.
func (p program) inHome(c *cli.Context, name string, flags []string, command ...string) error {
	line := append(ownDirectories(c), runName, "--rm", "--"+settings.KeptHome, name)
	if folder := c.Args().Get(2); folder != "" {
		line = append(line, "--"+settings.Keep, folder)
	}
	line = slices.Concat(line, flags, []string{"--"}, command)
	if status := p.execute(line); status != 0 {
		return exitStatus(status)
	}
	return nil
}

// ownDirectories are the flags of another command line that works with the same clove as this one.
func ownDirectories(c *cli.Context) (line []string) {
	for _, flag := range []string{flagRoot, flagRunDir, flagSocket} {
		if c.IsSet(flag) {
			line = append(line, "--"+flag, c.String(flag))
		}
	}
	return line
}

// homeHere finds the caller's kept home of this folder.
func (p program) homeHere(c *cli.Context, name string) (home agent.KeptHome, found bool, err error) {
	var here syscall.Stat_t
	if err := syscall.Stat(".", &here); err != nil {
		return home, false, agent.Failed("folder", err)
	}
	all, err := p.allHomes(c)
	at := slices.IndexFunc(all, func(h agent.KeptHome) bool {
		return h.Name == name && h.UID == uint32(os.Geteuid()) && h.Device == here.Dev && h.Inode == here.Ino
	})
	if err != nil || at < 0 {
		return home, false, err
	}
	return all[at], true, nil
}

func (p program) allHomes(c *cli.Context) ([]agent.KeptHome, error) {
	d, err := p.cloved(c)
	if err == nil {
		defer d.Close()
		result, err := client.Do(c.Context, d, methods.HomeList, api.Nothing{})
		return result.Homes, err
	}
	if agent.KindOf(err) != agent.KindNotFound {
		return nil, err
	}
	b, err := p.ownStore(c)
	if err != nil {
		return nil, err
	}
	return b.Homes(uint32(os.Geteuid()))
}
