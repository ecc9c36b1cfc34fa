package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/client"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/runtime"
)

// share finds who answers for what agents share: cloved where it runs, else this process.
// The closer is called when the run has ended.
func (p *program) share(c *cli.Context, spec agent.Spec) (runtime.Kernel, io.Closer, error) {
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

// reportWarned says that a budget reached its mark.
func (p *program) reportWarned(b api.Budget) { p.say("clove", cyan, "budget: "+usedText(b)) }

// reportPaused says why the run is paused, and what lets it continue.
func (p *program) reportPaused(b api.Budget, timeout time.Time) {
	text := "budget: " + usedText(b)
	if b.Wanted > 0 {
		text += fmt.Sprintf(", %d more are wanted", b.Wanted)
	}
	text += "; the run is paused until clove budget "
	if shared(b) {
		text += "set gives " + b.Account + " more"
	} else {
		text += "raise gives more"
	}
	if b.Period != "" {
		text += " or the " + b.Period + " ends"
	}
	if !timeout.IsZero() {
		text += "; --timeout ends it at " + timeout.Format(time.TimeOnly)
	}
	p.say("clove", cyan, text)
}

// usedText is how much of a budget is used. An account that others spend from too is named.
func usedText(b api.Budget) string {
	text := fmt.Sprintf("%d of %d %s are used", b.Used, *b.Granted, b.Dimension)
	if shared(b) {
		text += " in " + b.Account
	}
	return text
}

// shared reports whether several runs spend from the account.
func shared(b api.Budget) bool {
	_, ofRun := budget.Key(b.Account).Run()
	return !ofRun
}

// closers are closed in order.
type closers []io.Closer

func (all closers) Close() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}
