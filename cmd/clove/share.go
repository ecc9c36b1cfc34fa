package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/client"
	"clove.run/clove/daemon/logs"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/models/attach"
	"clove.run/clove/models/config"
	"clove.run/clove/models/control"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
	"clove.run/clove/runtime"
	"clove.run/clove/secrets/sealed"
	toolcontrol "clove.run/clove/tools/control"
	"clove.run/clove/tools/inside"
)

// share chooses the process that keeps the grants, budgets and models of the run: cloved where it
// runs, else this one.
// The closer is called when the run has ended.
func (p launcher) share(c *cli.Context, spec agent.Spec, streams *runtime.IO) (io.Closer, error) {
	if what, _, _ := spec.Kernel.Denial(); what == "pause" {
		return nil, &agent.Error{Kind: agent.KindUnenforceable, Step: "--on-denial", Message: "a run in the foreground that is paused could not be resumed",
			Hint: "start it with run -d, or use --on-denial end"}
	}
	if spec.Kernel.Idle != 0 {
		return nil, &agent.Error{Kind: agent.KindUnenforceable, Step: "--idle", Message: "cloved ends an agent that only waits, and has not started a run in the foreground",
			Hint: "start it with run -d, or omit --idle"}
	}
	if !spec.Kernel.Shares() && spec.Kernel.Namespace == "" {
		return io.NopCloser(nil), nil
	}
	d, err := p.dial(c.Context, socket(c))
	if err == nil {
		if !spec.Kernel.Shares() {
			return d, nil
		}
		if err := checkSecrets(c.Context, d, spec); err != nil {
			return nil, errors.Join(err, d.Close())
		}
		s := client.NewShare(d)
		streams.Kernel, streams.Secrets = s, s
		if p.asking != nil {
			p.asking.answers = s
		}
		served := attach.NewClient(filepath.Dir(socket(c)))
		streams.Models, streams.Tools = served, served
		return d, nil
	}
	if agent.KindOf(err) != agent.KindNotFound {
		return nil, err
	}
	if err := cmp.Or(checkAlone(spec.Kernel, isTerminal(p.in)), checkAnswerable(spec.Kernel, p.asking)); err != nil {
		return nil, err
	}
	paths, err := directories(c)
	if err != nil {
		return nil, err
	}
	own := &kernel.Own{
		Config: kernel.Config{IsHost: runtime.IsHost, CheckNet: p.checkNet, Secrets: ownKeys{sealed.NewKeeper(cmp.Or(os.Getenv("CLOVE_SECRET_KEY"), sealed.DefaultFile))}},
		Kept:   paths.Kernel(),
		Dir:    func(id agent.ID) string { return filepath.Join(paths.Run, string(id)) },
		Audit:  func(id agent.ID) string { return audit.RunDir(audit.Dir(paths.State), id) },
	}
	if len(spec.Kernel.Secrets) > 0 {
		if err := checkOwnSecrets(own, spec); err != nil {
			return nil, err
		}
		streams.Secrets = own
	}
	streams.Kernel = own
	if p.asking != nil {
		p.asking.answers = own
	}
	all := closers{own}
	if spec.Kernel.HasTools() {
		all = append(serveTools(own, paths.Run, streams), own)
	}
	if !spec.Kernel.HasModels() {
		return all, nil
	}
	served, err := models(own, func(id agent.ID) (control.Contents, error) { return logs.OpenCalls(paths.ModelLog(id), modelLogBytes) })
	if err != nil {
		return nil, err
	}
	streams.Models, own.Waiting = served, served.Waiting
	return append(closers{served}, all...), nil // what calls used is settled before the ledger closes
}

// serveTools serves tools in this process, and returns what ends them.
func serveTools(own *kernel.Own, runDir string, streams *runtime.IO) closers {
	doors := toolcontrol.New(toolcontrol.Options{Programs: runtime.Programs, Calls: func(ctx context.Context, run agent.ID, calls *channel.Conn) {
		_ = own.Calls(ctx, run, calls) // ends with the run
	}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	insides := inside.NewRuns(runDir)
	streams.Tools, own.Tools = doors, insides
	return closers{doors, insides}
}

// checkNet refuses a network rule that a run may not get later: it could not start with it, or this host's ceiling is
// below it.
func (p launcher) checkNet(rule agent.EgressRule, owner agent.Owner) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	spec := agent.Spec{Network: agent.NetworkAllowlist, Egress: agent.Egress{Rules: []agent.EgressRule{rule}}}
	if h.Ceiling != "" {
		if err := resolve.CheckCeiling(spec, h.Ceiling, "network.mode", "network.allow"); err != nil {
			return err
		}
	}
	return runtime.CheckRule(rule, owner)
}

// modelLogBytes bounds a log of models without cloved, whose configuration has another bound.
const modelLogBytes = 64 << 20

// models serves models in this process.
func models(own *kernel.Own, contents func(agent.ID) (control.Contents, error)) (*control.Control, error) {
	now, err := loadModels()
	if err != nil {
		return nil, err
	}
	return control.New(control.Options{
		Ledger: own, Secrets: own, Contents: contents, Config: func() *config.Config { return now }, Programs: runtime.Programs,
		Secret: func(name string) (string, error) {
			return control.ReadSecret(cmp.Or(os.Getenv("CLOVE_SECRETS"), control.SecretsDir), name)
		},
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}), nil
}

// loadModels reads models.yaml for a command without cloved.
func loadModels() (*config.Config, error) {
	return config.Load(cmp.Or(os.Getenv("CLOVE_MODELS"), config.DefaultFile))
}

// checkAlone refuses what a run in the foreground cannot have where no cloved runs: what
// outlasts it, and a pause that is not shown on a terminal.
func checkAlone(k agent.Kernel, terminal bool) error {
	for _, text := range k.Budgets {
		limit, err := budget.ParseLimit(text)
		if err != nil {
			return err
		}
		if limit.Period != "" {
			return needsCloved(flagBudget, "a "+string(limit.Period)+" outlasts the run, and cloved, which counts it, does not run")
		}
	}
	switch {
	case k.StdoutTo != "":
		return needsCloved(settings.StdoutTo, "cloved, which keeps mail, does not run")
	case k.StdinFrom != "":
		return needsCloved(settings.StdinFrom, "cloved, which keeps mail, does not run")
	case len(k.Secrets) > 0 && k.People(agent.AskSecret) > 0:
		return needsCloved(settings.Asks, "cloved, which asks people about uses of secrets, does not run")
	case k.Namespace != "":
		return needsCloved(flagNamespace, "cloved, which keeps namespaces, does not run")
	case k.AtEnd == string(budget.Pause) && !terminal:
		return needsCloved(flagAtEnd, "the run would stand still unseen: there is no terminal, and cloved, which could give more, does not run")
	}
	return nil
}

func needsCloved(flag, message string) error {
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "--" + flag, Message: message, Hint: agent.StartCloved() + "; or leave it away"}
}

// reportAsked says what a run asks people, and how they answer.
func (p launcher) reportAsked(_ context.Context, a api.Approval) {
	for _, line := range questionLines(a) {
		p.say("clove", cyan, fmt.Sprint(line))
	}
	p.say("clove", cyan, "in another terminal: clove approvals allow "+a.ID+", or deny "+a.ID)
}

// reportWarned says that a budget reached its mark.
func (p launcher) reportWarned(b api.Budget) { p.say("clove", cyan, "budget: "+usedText(b)) }

// reportPaused says why the run is paused, and what lets it continue. alone: no cloved answers for
// the run.
func (p launcher) reportPaused(b api.Budget, timeout time.Time, alone bool) {
	text := "budget: " + usedText(b)
	if b.Wanted > 0 {
		text += ", " + budget.Dimension(b.Dimension).Show(b.Wanted) + " more are wanted"
	}
	switch {
	case alone:
		text += "; the run is paused, and without cloved the budget cannot grow: three times ctrl-c ends it"
	case shared(b):
		text += "; the run is paused until clove budget set gives " + b.Account + " more"
	default:
		text += "; the run is paused until clove budget raise gives more"
	}
	if b.Period != "" {
		text += " or the " + b.Period + " ends"
	}
	if !timeout.IsZero() {
		text += "; --timeout ends it at " + timeout.Format(time.TimeOnly)
	}
	p.say("clove", cyan, text)
}

// reportCallout says that a command or URL of the user's failed. The output of a command may be
// in it.
func (p launcher) reportCallout(flag string, err error) { p.say("clove", red, flag+": "+err.Error()) }

// usedText is how much of a budget is used. An account that others spend from too is named.
func usedText(b api.Budget) string {
	text := budget.Dimension(b.Dimension).Words(b.Used, *b.Granted) + " are used"
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
