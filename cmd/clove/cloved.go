package main

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/client"
)

// socket is where cloved listens, if it runs.
func socket(c *cli.Context) string {
	if path := c.String(flagSocket); path != "" {
		return path
	}
	return filepath.Join(c.String(flagRunDir), "clove.sock")
}

// cloved connects to the daemon, for commands that need it.
func (p *program) cloved(c *cli.Context) (*client.Client, error) { return p.dial(c.Context, socket(c)) }

// withCloved connects a command to the daemon before it acts.
func (p *program) withCloved(do func(c *cli.Context, d *client.Client) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		d, err := p.cloved(c)
		if err != nil {
			return err
		}
		defer d.Close()
		return do(c, d)
	}
}

// either connects to cloved where it runs. Without it root uses the store
// itself; nobody else can.
func (p *program) either(c *cli.Context) (*client.Client, backend, error) {
	d, derr := p.dial(c.Context, socket(c))
	if derr == nil {
		return d, nil, nil
	}
	if agent.KindOf(derr) != agent.KindNotFound {
		return nil, nil, derr
	}
	b, err := p.backend(c)
	if agent.KindOf(err) == agent.KindPrivilege && err != nil {
		err = &agent.Error{Kind: agent.KindPrivilege, Message: "cloved does not run, and only root can do without it", Hint: "use sudo, or start cloved"}
	}
	return nil, b, err
}
