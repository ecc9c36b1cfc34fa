package main

import (
	"cmp"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
	"clove.run/clove/runtime"
)

const runName = "run"

// launcher starts runs, and reports about those in the foreground.
type launcher program

func runCommand() command {
	return command{
		task: "run", usage: "run one agent until it ends, and exit as it did",
		verbs: []verb{{line: "clove run [flags] SCRIPT [flags] [-- ARGS...]\nclove run [flags] AGENT [flags] [-- ARGS...]\nclove run [flags] -- COMMAND [ARGS...]", act: of(launcher.run), free: true}},
		description: "SCRIPT ending in .py, .js, .mjs, .sh, .rb or .pl runs with that language's interpreter; any other\n" +
			"must be a program or begin with #!. Its folder appears, copy on write, at /workspace.\n" +
			"COMMAND is looked up inside the sandbox, and sees an empty /workspace, or with --workspace . your folder.\n" +
			"AGENT is a manifest (clove manifest), as agent.yaml, or the name of one (clove agents), as claude-code: what to run,\n" +
			"and the flags by their keys; what is typed comes over it. ./claude-code is a file.\n" +
			"A Python script with a .venv beside it runs in that, unless you are in another one.\n\n" +
			"Sizes: 512K, 256M, 1.5G (powers of 1024). Durations: 90, 1.5s, 10m, 2h30m.\n\n" +
			"Exit status: the agent's own; 128+n when signal n ended it; 124 time is up; 137 memory, output,\n" +
			"budget or --on-denial, or killed; 125 clove could not start it; 126 not executable; 127 not found.",
		flags: runFlags(),
	}
}

// run says what an agent that is a file has changed: it works in a folder that the command line need not name.
func (p launcher) run(c *cli.Context) error {
	return p.performShowing(c, p.runSpec, func(s agent.Spec) bool { return s.Manifest.Name != "" })
}

// perform builds the spec, runs it, and turns the record into an exit status.
func (p launcher) perform(c *cli.Context, specOf func(*cli.Context, host.Host, agent.ID) (agent.Spec, error)) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	// Before the spec, so that a mistake in the spec is written to the file as well.
	result, err := newResultFile(h, c.String(flagResult))
	if err != nil {
		return err
	}
	started := time.Now()
	spec, err := specOf(c, h, agent.NewID())
	var lesson *learning
	if err == nil {
		lesson, err = newLearning(c, h)
	}
	// Nothing is started, so neither an ID file nor a record is written.
	if err == nil && c.Bool(flagExplainNetwork) {
		return explainNetwork(p.screen, spec)
	}
	if err == nil && !p.json {
		reportFilter(p.screen, spec)
		reportWider(p.screen, spec.Policy)
		reportShadow(p.screen, spec)
		reportWorktree(p.screen, spec)
		reportReadable(p.screen, spec)
	}
	var ids idFile
	if err == nil {
		ids, err = newIDFile(h, c.String(flagIDFile), spec.ID)
	}
	if err == nil && spec.Detached {
		if !p.json {
			reportUnseen(p.screen, spec, h.Dir)
		}
		return ids.keptUnless(p.detach(c, spec))
	}
	var record agent.Record
	var unwritten error
	status := 0
	if err == nil {
		record, err = p.launch(c, h, spec, lesson, func(r agent.Record) { status, unwritten = p.settle(result, r) })
	}
	if err != nil {
		_ = ids.keptUnless(err)
		// The record of a refused run: the file must not show an earlier run.
		if werr := result.write(runtime.Refused(spec, started, err)); werr != nil {
			p.report(werr)
		}
		return err
	}
	p.reportEnd(record, spec)
	if err := lesson.settle(p.screen, spec, record); err != nil {
		return err
	}
	if record.ExitCode != 0 && !p.json {
		if record.Error == nil && record.ExitCode == agent.ExitNotFound {
			reportHomeTools(p.screen, spec, h)
		}
		reportUnseen(p.screen, spec, h.Dir)
	}
	if unwritten != nil {
		p.report(unwritten)
	}
	return exitStatus(status)
}

// settle writes the record to --result and decides the exit status. A record that
// cannot be written makes a successful run fail: a reader of the file would otherwise
// get an old one.
func (p launcher) settle(result resultFile, record agent.Record) (status int, err error) {
	status, err = record.ExitCode, result.write(record)
	if err != nil && status == 0 {
		status = exitFailed
	}
	status = p.withLosses(status)
	if p.ending != nil {
		p.ending(status)
	}
	return status, err
}

// launch runs the spec: root's here, others' by cloved, and root's that applies changes while it runs: cloved reads the
// files of runs that it has started. From here on signals are
// runtime's, which passes them to the agent, until ended is called with the record.
func (p launcher) launch(c *cli.Context, h host.Host, spec agent.Spec, lesson *learning, ended func(agent.Record)) (agent.Record, error) {
	p.displayFor(c)
	applies := spec.Kernel.People(agent.AskApply) > 0
	if applies && lesson != nil {
		return agent.Record{}, invalid(flagLearn, "leave apply out of --"+settings.Asks, "what a run uses is not learned while it applies changes")
	}
	if h.UID != 0 || applies {
		return p.launchByCloved(c, spec, ended)
	}
	b, err := p.backend(c)
	if err != nil {
		return agent.Record{}, err
	}
	streams := runtime.IO{Stdin: p.in, Stdout: p.out, Stderr: p.err, Display: p.display, Ended: ended}
	learned, err := lesson.attach(p.screen, spec, &streams)
	if err != nil {
		return agent.Record{}, err
	}
	defer learned()
	if c.Bool(flagDebug) {
		streams.Debug = p.err
	}
	if !p.json {
		streams.Denied = p.reportDenied
	}
	if path := c.String(flagNetworkLog); path != "" {
		// Only its owner may read it: it shows what the agent connects to.
		log, err := os.OpenFile(h.Absolute(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return agent.Record{}, &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagNetworkLog, Message: "cannot open the log",
				Hint: "name a file in a directory that exists", Err: err}
		}
		defer log.Close()
		streams.NetworkLog = p.lost.noting(log)
	}
	here := p.asksHere(c.Context, spec)
	closer, err := p.share(c, spec, &streams)
	if err != nil {
		here.close()
		return agent.Record{}, err
	}
	defer func() {
		here.close()
		if err := closer.Close(); err != nil {
			p.report(err)
		}
	}()
	if !p.json {
		streams.CalloutFailed = p.reportCallout
		_, alone := streams.Kernel.(*kernel.Own)
		streams.Warned, streams.HomeCopied, streams.Asked = p.reportWarned, p.reportHomeCopied, p.reportAsked
		streams.PausedFor = func(b api.Budget, timeout time.Time) { p.reportPaused(b, timeout, alone) }
	}
	// While the agent has the terminal, clove's own lines need a carriage return.
	p.raw = spec.Terminal
	defer func() { p.raw = false }()
	defer p.showSteps(&streams)()
	if here != nil {
		here.streams(&streams)
	}
	return b.Run(c.Context, spec, streams)
}

// reportEnd reports on stderr how the run ended: with --json always and as the record,
// otherwise only if there is something to do about it.
func (p launcher) reportEnd(record agent.Record, spec agent.Spec) {
	if p.json {
		_ = writeLine(p.err, record) // without stderr there is nowhere to report it
		return
	}
	if record.Error != nil {
		failure := *record.Error
		if h, err := p.host(); err == nil && record.ExitCode == agent.ExitNotFound {
			failure.Hint = cmp.Or(homeHint(spec, h, spec.Command[:min(1, len(spec.Command))]), outside(spec, h), failure.Hint)
		}
		p.reportFailure(failure)
	}
	for _, line := range ending(record, spec.Limits) {
		p.say("clove", red, line)
	}
	if text := askedText(record.Asked); text != "" {
		p.say("clove", cyan, text)
	}
	reportShadowUse(p.screen, record, spec)
}
