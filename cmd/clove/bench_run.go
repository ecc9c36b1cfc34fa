package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	results "clove.run/clove/bench"
	"clove.run/clove/bench/machine"
	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/report"
	"clove.run/clove/bench/run"
	"clove.run/clove/policies/host"
)

// oneBench is one clove bench run.
type oneBench struct {
	benchVerbs
	line     *cli.Context
	runner   *run.Runner
	attempts []plan.Attempt // all that were chosen
	left     []plan.Attempt // those without a result
	manifest results.Manifest
}

// run runs what a suite asks for.
func (p benchVerbs) run(c *cli.Context) error {
	b, err := p.newBench(c)
	if err != nil {
		return err
	}
	if err := b.describe(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.runner.Dir, results.AttemptsDir), 0o755); err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagResults, Message: "cannot make the folder", Hint: "name one where you may write", Err: err}
	}
	file, err := results.OpenResults(b.runner.Dir)
	if err != nil {
		return err
	}
	defer file.Close()
	// From here on a signal ends the agents, and leaves their attempts without a result.
	ctx, stop := signal.NotifyContext(c.Context, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	return b.execute(ctx, file)
}

// newBench reads everything that was asked for and makes nothing.
func (p benchVerbs) newBench(c *cli.Context) (*oneBench, error) {
	s, attempts, err := p.attempts(c)
	if err != nil {
		return nil, err
	}
	h, err := p.host()
	if err != nil {
		return nil, err
	}
	r := &run.Runner{Suite: s, Host: h, Dir: h.Absolute(cmp.Or(c.String(flagResults), s.Name+"-results")),
		Memory: machine.Available() / 5 * 4, FailFast: c.Bool(flagFailFast), NoParity: c.Bool(flagNoParity)}
	for flag, number := range map[string]*int{flagRetries: &r.Retries, flagParallel: &r.Parallel} {
		if *number, err = count(c, flag); err != nil {
			return nil, err
		}
	}
	if !c.IsSet(flagRetries) {
		r.Retries = standardRetries
	}
	if r.Sandboxes, err = p.sandboxes(c, h); err != nil {
		return nil, err
	}
	if h.UID != 0 && s.Kept() {
		return nil, needsRoot()
	}
	b := &oneBench{benchVerbs: p, line: c, runner: r, attempts: attempts, left: attempts}
	if err := b.resume(); err != nil {
		return nil, err
	}
	return b, r.Check(attempts)
}

// count reads a flag that is a number; 0: it was not given.
func count(c *cli.Context, flag string) (int, error) {
	text := c.String(flag)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<16 {
		return 0, invalid(flag, "write a number such as 2", "%.64q is none", text)
	}
	return n, nil
}

// resume finds out which attempts are left. Without --resume, a folder with results is not
// written to.
func (b *oneBench) resume() error {
	dir := b.runner.Dir
	before, _, err := results.ReadResults(dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, results.ManifestFile))
	if errors.Is(err, os.ErrNotExist) && len(before) == 0 {
		return nil
	}
	if !b.line.Bool(flagResume) {
		return &agent.Error{Kind: agent.KindConflict, Step: "--" + flagResults, Message: dir + " has results already", Hint: "continue them with --" + flagResume + ", or name another folder"}
	}
	m, err := results.ReadManifest(dir)
	if err != nil {
		return err
	}
	if m.Suite.SHA256 != b.runner.Suite.SHA256 || m.Parity == b.runner.NoParity {
		return &agent.Error{Kind: agent.KindConflict, Step: "--" + flagResume, Message: "the suite or --" + flagNoParity + " has changed since " + dir + " was begun",
			Hint: "name another folder with --" + flagResults}
	}
	b.manifest, b.left = m, plan.Left(b.attempts, before)
	return nil
}

// describe looks at the machine, and refuses one that is not quiet enough.
func (b *oneBench) describe() error {
	m, err := b.runner.Manifest(len(b.attempts))
	if err != nil {
		return err
	}
	if !b.manifest.Began.IsZero() {
		m.Began, m.Noise = b.manifest.Began, b.manifest.Noise
	}
	noise := machine.Measure("before")
	m.Noise = append(m.Noise, noise)
	b.manifest = m
	if b.line.Bool(flagQuietHost) {
		return requireQuiet(m.Host, noise)
	}
	return nil
}

// prepare makes what the attempts share, and notes the conditions.
func (b *oneBench) prepare(ctx context.Context) (err error) {
	if err := b.runner.Prepare(ctx, environments(b.line, b.runner.Host)); err != nil {
		return err
	}
	if err := b.runner.Programs(ctx, b.left); err != nil {
		return err
	}
	if !b.runner.NoParity {
		if b.manifest.Enforced, err = b.runner.Probe(ctx); err != nil {
			return err
		}
	}
	return results.WriteManifest(b.runner.Dir, b.manifest)
}

// environments is the folder of --environments; empty: that of the results has its own.
func environments(c *cli.Context, h host.Host) string {
	if dir := c.String(flagCache); dir != "" {
		return h.Absolute(dir)
	}
	return ""
}

// execute runs the attempts. In the middle the machine is measured while none runs.
func (b *oneBench) execute(ctx context.Context, file *os.File) error {
	shown := newProgress(b.screen, len(b.left))
	b.runner.Done = shown.show
	half := len(b.left) / 2
	err := b.runner.Run(ctx, file, b.left[:half])
	if err == nil && half > 0 {
		b.manifest.Noise = append(b.manifest.Noise, machine.Measure("between"))
	}
	if err == nil {
		err = b.runner.Run(ctx, file, b.left[half:])
	}
	shown.end()
	b.manifest.Noise = append(b.manifest.Noise, machine.Measure("after"))
	if err == nil {
		b.manifest.Ended = time.Now().UTC()
		b.manifest.Results, err = run.SumFile(filepath.Join(b.runner.Dir, results.ResultsFile))
	}
	if err := errors.Join(ignoreStopped(err), results.WriteManifest(b.runner.Dir, b.manifest)); err != nil {
		return err
	}
	return b.conclude(err)
}

func ignoreStopped(err error) error {
	if errors.Is(err, run.ErrStopped) {
		return nil
	}
	return err
}

// conclude prints the rates and the folder, and decides the exit status.
func (b *oneBench) conclude(stopped error) error {
	d, err := report.Load(b.runner.Dir)
	if err != nil {
		return err
	}
	missing := 0
	for _, r := range d.Agents() {
		b.say("bench", cyan, fmt.Sprintf("%s: %d of %d passed", r.Agent, r.Passed, r.Graded))
		missing += r.Infrastructure
	}
	if _, err := fmt.Fprintln(b.out, b.runner.Dir); err != nil {
		return err
	}
	if stopped != nil || missing > 0 {
		b.report(&agent.Error{Step: "bench", Message: "some attempts have no result", Hint: "clove bench run --" + flagResume + " makes them; clove bench report says why"})
		return exitStatus(exitFailed)
	}
	return nil
}
