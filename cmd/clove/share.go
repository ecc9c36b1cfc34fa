package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/client"
	"clove.run/clove/kernel"
	"clove.run/clove/runtime"
)

// share finds who answers for what agents share: cloved where it runs, else this process.
// The closer is called when the run has ended.
func (p *program) share(c *cli.Context, spec agent.Spec) (runtime.Kernel, io.Closer, error) {
	if what, _, _ := spec.Kernel.Denial(); what == "pause" {
		return nil, nil, &agent.Error{Kind: agent.KindUnenforceable, Step: "--on-denial", Message: "a run in the foreground that is paused could not be resumed",
			Hint: "start it with run -d, or use --on-denial end"}
	}
	if !spec.Kernel.Shares() {
		return nil, io.NopCloser(nil), nil
	}
	d, err := p.dial(c.Context, socket(c))
	if err == nil {
		s := client.NewShare(d)
		return s, closers{s, d}, nil
	}
	if agent.KindOf(err) != agent.KindNotFound {
		return nil, nil, err
	}
	paths, err := directories(c)
	if err != nil {
		return nil, nil, err
	}
	own := &kernel.Own{
		Config: kernel.Config{IsHost: runtime.IsHost, CheckNet: runtime.CheckRule},
		Dir:    func(id agent.ID) string { return filepath.Join(paths.Run, string(id)) },
		Audit:  func(id agent.ID) string { return audit.RunDir(audit.Dir(paths.State), id) },
	}
	return own, own, nil
}

// reportBudget says that a budget reached its mark, or that a run is paused for it.
func (p *program) reportBudget(b api.Budget, paused bool) {
	text := fmt.Sprintf("budget: %d of %d %s are used", b.Used, *b.Granted, b.Dimension)
	if paused {
		text += "; the run is paused until clove budget raise gives more"
	}
	p.say("clove", cyan, text)
}

// closers are closed in order.
type closers []io.Closer

func (all closers) Close() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}
