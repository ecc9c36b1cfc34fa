package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/policies/host"
	"clove.run/clove/tools/clients"
)

// serverName is what clients call clove mcp in their configurations.
const serverName = "clove"

// clientNames are those that install knows.
func clientNames(separator string) string {
	var names []string
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return strings.Join(names, separator)
}

// clientFile is the configuration of one client.
type clientFile struct {
	clients.Client
	path string // no link
	old  []byte // nil: there is none
	info fs.FileInfo
}

// install puts clove mcp into a client's configuration. Flags behind -- are those of clove mcp, and are tried first.
func (p mcpServer) install(c *cli.Context) error {
	f, flags, err := p.clientFile(c)
	if err != nil {
		return err
	}
	if err := p.checkFlags(flags); err != nil {
		return err
	}
	entry, found, err := f.Read(f.old, serverName)
	if err != nil {
		return f.broken(err)
	}
	if found && !entry.Ours() {
		return &agent.Error{Kind: agent.KindConflict, Message: f.path + " has a server " + serverName + " that is another program",
			Hint: "rename it in the file, or take it out: " + f.Title + " starts it as " + printable(strings.Join(append([]string{entry.Command}, entry.Args...), " "))}
	}
	own := clients.Entry{Command: p.ownCommand(c), Args: slices.Concat(ownDirectories(c), []string{mcpName}, flags)}
	text, err := f.Add(f.old, serverName, own)
	if err != nil {
		return f.broken(err)
	}
	if bytes.Equal(text, f.old) {
		p.say("clove", cyan, f.path+" has it already")
		return nil
	}
	return p.replace(c, f, text, f.Next)
}

// uninstall takes it out.
func (p mcpServer) uninstall(c *cli.Context) error {
	f, flags, err := p.clientFile(c)
	if err != nil {
		return err
	}
	if len(flags) > 0 {
		return invalid("", "clove mcp uninstall "+f.Name, "it takes one client")
	}
	entry, found, err := f.Read(f.old, serverName)
	switch {
	case err != nil:
		return f.broken(err)
	case !found:
		return &agent.Error{Kind: agent.KindNotFound, Message: f.path + " has no server " + serverName, Hint: "--" + flagScope + " user and --" + flagScope + " project are two files"}
	case !entry.Ours():
		return &agent.Error{Kind: agent.KindConflict, Message: "the server " + serverName + " of " + f.path + " is another program", Hint: "take it out by hand"}
	}
	text, err := f.Remove(f.old, serverName)
	if err != nil {
		return f.broken(err)
	}
	return p.replace(c, f, text, "a "+f.Title+" that runs keeps the server until it ends")
}

// clientFile finds the file that the line means, and reads it.
func (p mcpServer) clientFile(c *cli.Context) (f clientFile, flags []string, err error) {
	words := c.Args().Tail()
	if len(words) == 0 {
		return f, nil, invalid("", "name one: "+clientNames(", "), "no client is named")
	}
	known := false
	if f.Client, known = clients.Named(words[0]); !known {
		return f, nil, invalid("", "it knows "+clientNames(", ")+"; any other program starts clove mcp by its own configuration", "there is no client %.64q", words[0])
	}
	for _, flag := range mcpFlags() {
		if name := flag.Names()[0]; c.IsSet(name) {
			return f, nil, invalid(name, "write it behind --, as clove mcp install "+f.Name+" -- --"+name+" VALUE", "flags of the server come last")
		}
	}
	scope := c.String(flagScope)
	if scope != "" && scope != "user" && scope != "project" {
		return f, nil, invalid(flagScope, "user, or project for the file of this folder", "there is no scope %.64q", scope)
	}
	h, err := p.host()
	if err != nil {
		return f, nil, err
	}
	home, _ := h.Lookup("HOME")
	if scope != "project" && !filepath.IsAbs(home) {
		return f, nil, invalid(flagScope, "set HOME, or use --"+flagScope+" project", "HOME is not set")
	}
	f.path = f.Path(clients.Places{Home: home, Dir: h.Dir, Lookup: h.Lookup}, scope == "project", host.Exists)
	return f, words[1:], f.read(scope == "project")
}

// maxConfig bounds a file: that of Claude Code keeps histories.
const maxConfig = 64 << 20

// read follows a link in a home, where people keep such files elsewhere; in a folder one may be another's.
func (f *clientFile) read(project bool) error {
	real, err := filepath.EvalSymlinks(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		if info, lerr := os.Lstat(f.path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return &agent.Error{Kind: agent.KindInvalid, Message: f.path + " is a link that leads to nothing", Hint: "remove it, or make the file that it names"}
		}
		return nil
	}
	if err == nil && project && filepath.Clean(real) != filepath.Join(realFolder(filepath.Dir(f.path)), filepath.Base(f.path)) {
		return &agent.Error{Kind: agent.KindInvalid, Message: f.path + " is a link to " + real, Hint: "a folder's own configuration must be a file: another one could be changed by it"}
	}
	if err == nil {
		f.path = real
		if f.info, err = os.Stat(real); err == nil && !f.info.Mode().IsRegular() {
			err = errors.New("it is no regular file")
		}
	}
	if err == nil {
		f.old, err = host.ReadBounded(f.path, maxConfig)
	}
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Message: "cannot read " + f.path, Hint: "look at the file and its permissions", Err: err}
	}
	return nil
}

// realFolder is a folder without links; itself where it cannot be looked at.
func realFolder(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// broken is the error for a file that is left as it is.
func (f clientFile) broken(err error) error {
	if errors.Is(err, clients.ErrChanged) {
		return &agent.Error{Kind: agent.KindConflict, Message: "the entry of " + f.path + " cannot be changed without the rest of it", Hint: "change it by hand: docs/mcp.md has the entries"}
	}
	return &agent.Error{Kind: agent.KindInvalid, Message: f.path + " cannot be read: " + err.Error(), Hint: "repair it first; " + f.Title + " cannot read it either"}
}

// checkFlags tries the flags of clove mcp: a mistake would else be found by the client, in its log.
func (p mcpServer) checkFlags(flags []string) error {
	commands := program(p).commands()
	line, err := arrange(append([]string{mcpName}, flags...), commands)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Name == mcpName })
	commands[at].Action = func(given *cli.Context) error {
		h, err := p.host()
		if err == nil {
			_, err = p.sandbox(given, h)
		}
		return err
	}
	return program(p).app(commands).Run(append([]string{"clove"}, line.argv...))
}

// ownCommand is how a client starts clove: by its name where a folder's configuration is shared, else by its path,
// because a desktop application may have another PATH.
func (a *access) ownCommand(c *cli.Context) string {
	own, err := a.own()
	if err != nil {
		return serverName
	}
	found, err := exec.LookPath(serverName)
	if c.String(flagScope) == "project" && err == nil && realFolder(found) == realFolder(own) {
		return serverName
	}
	return own
}

// replace shows the change, asks, and writes the file.
func (p mcpServer) replace(c *cli.Context, f clientFile, text []byte, next string) error {
	fmt.Fprint(p.err, printableText(udiff.Unified(f.path, f.path, string(f.old), string(text))))
	if !c.Bool(flagYes) {
		if !isTerminal(p.in) {
			return invalid(flagYes, "look at the change, then give --yes", "there is no terminal to ask on")
		}
		if !yes(p.screen, bufio.NewReader(p.in), "write "+printable(f.path)+"?") {
			p.say("clove", cyan, "nothing was written")
			return exitStatus(exitFailed)
		}
	}
	if err := f.write(text); err != nil {
		return err
	}
	p.say("clove", cyan, printable(f.path)+" is written; "+next)
	return nil
}

// write replaces the file, with the owner and the permissions that it had.
func (f clientFile) write(text []byte) error {
	if now, err := host.ReadBounded(f.path, maxConfig); f.info != nil && (err != nil || !bytes.Equal(now, f.old)) || f.info == nil && host.Exists(f.path) {
		return &agent.Error{Kind: agent.KindConflict, Message: f.path + " has changed meanwhile", Hint: "say it again, and look at the new change"}
	}
	mode := fs.FileMode(0o600)
	if f.info != nil {
		mode = f.info.Mode().Perm()
	}
	err := os.MkdirAll(filepath.Dir(f.path), 0o755)
	if err == nil {
		err = atomicfile.Replace(f.path, mode, func(file *os.File) error {
			if f.info != nil {
				if was := f.info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 {
					if err := file.Chown(int(was.Uid), int(was.Gid)); err != nil {
						return err
					}
				}
				if err := file.Chmod(mode); err != nil { // without the umask
					return err
				}
			}
			_, err := file.Write(text)
			return err
		})
	}
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Message: "cannot write " + f.path, Hint: "look at the permissions of its folder", Err: err}
	}
	return nil
}
