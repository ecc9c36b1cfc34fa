package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
	"clove.run/clove/tools/people"
)

const mcpName = "mcp"

// Flags of clove mcp install and uninstall.
const flagScope = "scope"

// Flags of clove mcp serve and token.
const (
	flagPort = "port"
	flagNew  = "new"
)

// mcpServer is the command that programs of people start.
type mcpServer program

func mcpCommand() command {
	install := []string{flagScope, flagYes}
	return command{
		task: "share", usage: "give your coding agent or editor tools in a sandbox (MCP)",
		alone: &verb{line: "clove mcp [flags of run]", act: of(mcpServer.stdio), free: true},
		verbs: []verb{
			{line: "clove mcp serve [--port PORT] [flags of run]", act: of(mcpServer.listen), free: true, also: []string{flagPort}},
			{line: "clove mcp token [--new]", act: of(mcpServer.token), free: true, also: []string{flagNew}},
			{line: "clove mcp install [--scope user|project] [--yes] CLIENT [-- FLAGS...]", act: of(mcpServer.install), free: true, also: install},
			{line: "clove mcp uninstall [--scope user|project] [--yes] CLIENT", act: of(mcpServer.uninstall), free: true, also: install},
		},
		description: "clove mcp is a server of the Model Context Protocol on stdin and stdout, which a program starts: run_code, run_command,\n" +
			"read_file, write_file, list_files, apply_changes, fetch, spawn_agent, list_agents, ask_agent, kill_agent. They work in one\n" +
			"sandbox with the limits of the flags, which ends with the program. It sees nothing of yours without --workspace DIR: a\n" +
			"copy of that folder, which apply_changes writes back. It has no network without --allow. cloved must run.\n\n" +
			"serve is the same over HTTP, for programs of this host that have the token of clove mcp token; --new makes another one.\n" +
			"There each sandbox has a handle, which run_code returns.\n\n" +
			"install writes it into the configuration of CLIENT, " + clientNames(" or ") + ", after it has shown the change; FLAGS are those of\n" +
			"clove mcp. uninstall takes it out. --scope project means the file of this folder, which others may share.",
		flags: append(mcpFlags(),
			value(groupHTTP, flagPort, "", "serve: the port of 127.0.0.1", strconv.Itoa(mcpPort)),
			boolean(groupHTTP, flagNew, "", "token: make another one, and forget that which there is"),
			value(groupClient, flagScope, "", "install, uninstall: user, or project for the file of this folder", "user"),
			&cli.BoolFlag{Category: groupClient, Name: flagYes, Aliases: []string{"y"}, Usage: "install, uninstall: do not ask", DisableDefaultText: true}),
	}
}

const (
	groupHTTP   = "over HTTP"
	groupClient = "the client's configuration"
)

// notServed are flags of run that mean nothing here: the sandbox runs until its program ends, and the program
// has its output.
var notServed = []string{
	flagEntry, flagNetworkLog, flagExplainNetwork, flagOption, flagShadow, flagLearn, flagLearnNetwork, flagLearnReads, flagDelay, flagClipboard, flagInit, flagIDFile, flagResult,
	flagJSON, flagDebug, settings.Python, settings.ModelSetup, settings.Name, settings.Detach, settings.TTY, settings.Interactive, settings.Restart, settings.After, settings.Schedule,
	settings.KeepFiles, settings.Ready, settings.ReadyIn, settings.Priority, settings.StdinFrom, settings.StdoutTo, settings.Asks, settings.AskHold, settings.OnAsk, settings.OnAskKey, settings.Orphans,
}

func mcpFlags() []cli.Flag {
	return slices.DeleteFunc(runFlags(), func(f cli.Flag) bool { return slices.Contains(notServed, f.Names()[0]) })
}

// stdio answers one program until it ends, or a signal comes.
func (p mcpServer) stdio(c *cli.Context) error {
	return p.serve(c, false, []string{flagScope, flagYes, flagPort}, p.throughDoor)
}

// serve has calls answered as long as through does. Flags of other verbs are refused.
func (p mcpServer) serve(c *cli.Context, handles bool, others []string, through func(context.Context, channel.Handler) error) error {
	for _, flag := range others {
		if c.IsSet(flag) {
			return invalid(flag, "clove mcp --help says whose it is", "it is of another verb")
		}
	}
	h, err := p.host()
	if err != nil {
		return err
	}
	// At the installation it is not known in which folder a client will start it.
	if at := c.String(settings.Workspace); at != "" && filepath.Clean(at) == "." && new(resolve.Request).ShowFolder(h) != nil {
		return invalid(settings.Workspace, "start the client in a project, or name the folder by its path", "%s is a home or holds one, and a model would see what is in it", h.Dir)
	}
	spec, err := p.sandbox(c, h) // a mistake is said before anything is started
	if err != nil {
		return err
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	reportWider(p.screen, spec.Policy)
	signal.Ignore(unix.SIGPIPE) // a client that reads no more is an error of a write, and what was started is ended
	ctx, stop := signal.NotifyContext(c.Context, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	server := people.New(people.Options{
		Cloved: people.Over(d), Handles: handles,
		Spec:   func() (agent.Spec, error) { return p.sandbox(c, h) },
		Agents: func() []people.Agent { return agentsFor(h) },
		Agent:  func(name, prompt string) (agent.Spec, error) { return p.agent(c, h, name, prompt) },
		Show:   showChanges,
		Ending: ending,
		Report: func(line string) { p.say("clove", cyan, line) },
	})
	err = through(ctx, server.Handle)
	closing, cancel := context.WithTimeout(context.WithoutCancel(c.Context), time.Minute)
	defer cancel()
	return errors.Join(err, server.Close(closing))
}

// sandbox is the spec of one: what the flags say, with a command that does nothing.
func (p mcpServer) sandbox(c *cli.Context, h host.Host) (agent.Spec, error) {
	if err := refuseEmpty(mcpFlags(), c); err != nil {
		return agent.Spec{}, err
	}
	words := c.Args().Slice()
	if len(words) > 0 && words[0] == "serve" {
		words = words[1:]
	}
	if len(words) > 0 {
		return agent.Spec{}, invalid("", "clove mcp --help; the tools run commands, and the command line has none", "it takes no arguments, but there is %q", words[0])
	}
	request := requestOf(c)
	request.Args = []string{"sleep", "infinity"}
	id := agent.NewID()
	request.Set(settings.Name, mcpName+"-"+string(id[:8]))
	return resolve.Spec(request, h, id)
}

// agent is the spec of an agent by its name. What is typed comes over its file, as with clove run.
func (p mcpServer) agent(c *cli.Context, h host.Host, name, prompt string) (agent.Spec, error) {
	request := requestOf(c)
	request.Script = name
	if prompt != "" {
		request.Args = []string{prompt}
	}
	file, err := resolve.LoadManifest(name, h)
	if err != nil {
		return agent.Spec{}, err
	}
	if prompt != "" {
		request.Args = append(slices.Clone(promptWords[file.Written.Program]), request.Args...)
	}
	file, request, err = withManifest(request, nil, h)
	if err != nil {
		return agent.Spec{}, err
	}
	id := agent.NewID()
	spec, err := resolve.Spec(request, h, id)
	if err == nil && !c.IsSet(settings.Workspace) && spec.Files.Workspace == realFolder(h.Dir) {
		return agent.Spec{}, &agent.Error{Kind: agent.KindInvalid, Message: name + " works on a folder, and clove mcp was given none", Hint: "the user starts clove mcp with --workspace DIR"}
	}
	return spec, file.Mistake(err, requestOf(c).Values)
}

// promptWords come before a prompt that a program is to answer without a terminal.
var promptWords = map[string][]string{"claude": {"-p"}, "codex": {"exec"}, "opencode": {"run"}}

// agentsFor are the agents that the user has by name. A shell takes no prompt.
func agentsFor(h host.Host) (all []people.Agent) {
	for _, a := range resolve.Agents(h) {
		if m, err := resolve.LoadManifest(a.Name, h); err == nil && a.Name != "shell" {
			all = append(all, people.Agent{Name: a.Name, Description: m.Written.Description})
		}
	}
	return all
}

// showChanges writes changes as clove diff does, as patches where they have contents.
func showChanges(changes []agent.Change) string {
	var list []rootfs.Change
	for _, c := range changes {
		list = append(list, changeOf(c))
	}
	text := ""
	for _, c := range listed(list) {
		text += printableText(patch(c))
	}
	return text
}

// cloveMCP is installed beside clove's other programs.
const cloveMCP = "clove-mcp"

// doorProgram is the path of clove-mcp.
func doorProgram() (string, error) {
	programs, err := runtime.Programs()
	if err != nil {
		return "", err
	}
	program := filepath.Join(programs, cloveMCP)
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return "", &agent.Error{Kind: agent.KindNotFound, Step: mcpName, Message: program + " is not there", Hint: "build it with `make build`, or install clove's programs in one directory"}
	}
	return program, nil
}
