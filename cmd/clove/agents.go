package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// agentVerbs are those of clove agents. They run nothing.
type agentVerbs program

func agentsCommand() command {
	return command{
		task: "run", usage: "list the agents that have a name",
		verbs: []verb{
			{line: "clove agents [--json] [NAME]", act: of(agentVerbs.list)},
		},
		description: "clove run NAME runs an agent of this list in your folder. They are manifests: of ~/.config/clove/agents, of\n" +
			"/etc/clove/agents, and those that are shipped with clove. With NAME, its file is printed, to copy and change it.",
		flags: []cli.Flag{jsonFlag("write the list as a JSON array")},
	}
}

// agentRow is one agent as list prints it.
type agentRow struct {
	Name        string `json:"name" col:"NAME"`
	Program     string `json:"program,omitempty" col:"PROGRAM"` // where the caller has it; else what is installed
	Source      string `json:"source" col:"FROM"`
	Description string `json:"description,omitempty" col:"DESCRIPTION"`
}

func (p agentVerbs) list(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	if name := c.Args().First(); name != "" {
		return p.print(name, h)
	}
	rows := []agentRow{}
	for _, a := range resolve.Agents(h) {
		row := agentRow{Name: a.Name, Source: a.Source}
		if m, err := resolve.LoadManifest(a.Name, h); err != nil {
			row.Description = agent.FailureOf(err).Message
		} else {
			row.Description, row.Program = m.Written.Description, programOf(m, h)
		}
		rows = append(rows, row)
	}
	if c.Bool(flagJSON) {
		return p.printJSON(rows)
	}
	return p.printList(c, rows)
}

// programOf is the path of an agent's program, or what would be installed.
func programOf(m *resolve.Manifest, h host.Host) string {
	if m.Written.Program == "" {
		return ""
	}
	found, err := resolve.FindProgram(m.Written.Program, m.Installed(h), h)
	switch {
	case err == nil:
		return found.Path
	case m.Written.Install != "":
		return "installs " + m.Written.Package().String()
	}
	return "not installed"
}

// print prints the file of one.
func (p agentVerbs) print(name string, h host.Host) error {
	m, err := resolve.LoadManifest(name, h)
	if err == nil {
		_, err = p.out.Write(m.Text())
	}
	return err
}

// readyProgram installs an agent's program if the caller has none, and gives it the caller's terminal.
func (p launcher) readyProgram(c *cli.Context, m *resolve.Manifest, request *resolve.Request, h host.Host) error {
	if !request.Has(settings.Detach) && isTerminal(p.in) && isTerminal(p.out) {
		request.Set(settings.TTY, "true")
	}
	if request.Has(settings.Rootfs) {
		return nil // it is the root's
	}
	_, err := resolve.FindProgram(m.Written.Program, request.Installed, h)
	if err == nil || m.Written.Install == "" {
		return err
	}
	if agent.KindOf(err) != agent.KindNotFound && !p.json {
		p.say("clove", cyan, agent.FailureOf(err).Message) // one is there, and another is used
	}
	return p.install(c, m.Written.Package(), request.Installed, h)
}
