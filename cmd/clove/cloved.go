package main

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/client"
)

// socket is the path of cloved's socket, whether or not cloved runs.
func socket(c *cli.Context) string {
	if path := c.String(flagSocket); path != "" {
		return path
	}
	return filepath.Join(c.String(flagRunDir), "clove.sock")
}

// cloved connects to the daemon, for commands that need it.
func (p *program) cloved(c *cli.Context) (*client.Client, error) { return p.dial(c.Context, socket(c)) }

// either connects to cloved if it runs. Without cloved, root uses the store directly;
// the store's files are root's, so nobody else can.
func (p *program) either(c *cli.Context) (*client.Client, backend, error) {
	// cloved first: only it knows, for example, why a run waits.
	d, derr := p.dial(c.Context, socket(c))
	if derr == nil {
		return d, nil, nil
	}
	// Only without cloved the store is used: a cloved that refuses or fails must not be
	// bypassed.
	if agent.KindOf(derr) != agent.KindNotFound {
		return nil, nil, derr
	}
	b, err := p.ownStore(c)
	return nil, b, err
}

// ownStore opens the store for a caller that no cloved answers.
func (p *program) ownStore(c *cli.Context) (backend, error) {
	b, err := p.backend(c)
	if err != nil && agent.KindOf(err) == agent.KindPrivilege {
		err = &agent.Error{Kind: agent.KindPrivilege, Message: "cloved does not run, and only root can use clove without it", Hint: "use sudo, or start cloved"}
	}
	return b, err
}
