package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/policies"
)

// attached starts the team and stays with it until all agents have ended. A signal ends them. When
// it returns for another reason than the loss of cloved, no agent of the team goes on.
func (l *lineup) attached(c *cli.Context) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	began := time.Now()
	if err := l.start(c.Context, func(string) {}); err != nil {
		if agent.KindOf(err) != agent.KindInternal { // cloved answers
			l.stop(c.Context)
		}
		return err
	}
	followed := make(chan error, 1)
	go func() {
		followed <- l.together(c, l.client, l.followed(), func(i int, p *api.LogsParams) {
			p.Follow = true
			if l.steps[i].found {
				p.Since = began // what it wrote before was seen before
			}
		})
	}()
	ended := make(chan teamEnd, len(l.steps))
	for i, step := range l.steps {
		go func() {
			result, err := client.Do(c.Context, l.client, methods.RunWait, api.RunParams{Run: string(step.spec.ID)})
			ended <- teamEnd{i, result.Record, err}
		}()
	}
	status := 0
	held := map[int]bool{} // those that cannot start any more
	for range l.steps {
		var one teamEnd
		select {
		case one = <-ended:
		case got := <-signals:
			signal.Reset(unix.SIGINT, unix.SIGTERM, unix.SIGHUP) // a second one ends clove itself
			l.say("clove", cyan, "ending "+l.name)
			l.stop(c.Context)
			<-followed
			return exitStatus(agent.ExitSignalBase + int(got.(unix.Signal)))
		}
		if one.err != nil {
			return lostTeam(one.err, l.file)
		}
		if held[one.step] {
			continue
		}
		status = cmp.Or(status, one.record.ExitCode)
		if err := l.release(c.Context, one, held); err != nil {
			return lostTeam(err, l.file)
		}
	}
	if err := <-followed; err != nil {
		return lostTeam(err, l.file)
	}
	if status != 0 {
		return exitStatus(status)
	}
	return nil
}

// teamEnd is the end of one agent.
type teamEnd struct {
	step   int
	record agent.Record
	err    error
}

// lostTeam says how to go on where cloved went.
func lostTeam(err error, file string) error {
	f := agent.FailureOf(err)
	return &agent.Error{Kind: agent.KindOf(err), Message: f.Message, Hint: "the agents go on; clove up " + file + " follows them again"}
}

// release reports an agent that failed, and ends those that wait for it and so would wait for ever.
func (l *lineup) release(ctx context.Context, one teamEnd, held map[int]bool) error {
	get := func(step int) (agent.Run, error) {
		result, err := client.Do(ctx, l.client, methods.RunGet, api.RunParams{Run: string(l.steps[step].spec.ID)})
		return result.Run, err
	}
	first, err := get(one.step)
	if err != nil {
		return err
	}
	stuck := []string{}
	// In the order of starts: one that waits for one of these is behind it.
	for i, step := range l.steps {
		waits := slices.ContainsFunc(agent.Run{Spec: step.spec, Owner: first.Owner}.Afters(), func(a agent.After) bool {
			return a.RunName == first.Name() && !a.Met(&first) || slices.Contains(stuck, a.Name)
		})
		if !waits {
			continue
		}
		if run, err := get(i); err != nil || run.State != agent.StateQueued {
			if err != nil {
				return err
			}
			continue // it started while the first one ran
		}
		held[i], stuck = true, append(stuck, step.spec.Name)
	}
	if code := one.record.ExitCode; code != 0 {
		parts := []string{fmt.Sprintf("%s: exit status %d", first.Spec.Name, code)}
		if one.record.Error != nil {
			parts = append(parts, one.record.Error.Message)
		}
		l.say("clove", red, strings.Join(append(parts, ending(one.record, first.Spec.Limits)...), ": "))
	}
	if len(stuck) > 0 {
		l.say("clove", red, strings.Join(stuck, ", ")+" cannot start behind "+first.Spec.Name)
	}
	for _, name := range stuck {
		if err := client.Perform(ctx, l.client, methods.RunStop, api.StopParams{RunParams: api.RunParams{Run: name}}); err != nil {
			return err
		}
	}
	return nil
}

// stop ends what goes on of the team, in the reverse order.
func (l *lineup) stop(ctx context.Context) {
	runs, err := l.runs(ctx, l.client, func(run agent.Run) bool { return ofTeam(run, l.name) && run.State != agent.StateEnded })
	if err == nil {
		err = l.end(ctx, l.client, runs, teamEnding{quiet: true})
	}
	if err != nil {
		l.report(err)
	}
}

func (l *lineup) followed() (runs []agent.Run) {
	for _, step := range l.steps {
		runs = append(runs, agent.Run{Spec: step.spec})
	}
	return runs
}

// together prints the logs of several runs of a team, each line behind the name of its agent. choose
// changes what is asked for of one of them.
func (p teams) together(c *cli.Context, d *client.Client, runs []agent.Run, choose func(i int, params *api.LogsParams)) error {
	width := 0
	for _, run := range runs {
		width = max(width, len(agentOf(run)))
	}
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	var printing sync.Mutex // a line is printed whole
	errs := make(chan error, len(runs))
	printed := map[string]chan struct{}{} // by the name of the run: closed behind its last line
	for _, run := range runs {
		printed[run.Spec.Name] = make(chan struct{})
	}
	for i, run := range runs {
		name := agentOf(run)
		printer := &linePrinter{screen: p.screen, stamps: c.Bool(flagTimestamps), open: map[string]bool{}, name: name + strings.Repeat(" ", width-len(name)) + " | "}
		params := api.LogsParams{RunParams: api.RunParams{Run: string(run.Spec.ID)}}
		choose(i, &params)
		go func() {
			defer close(printed[run.Spec.Name])
			errs <- d.Logs(ctx, params, func(lines []api.LogLine) error {
				inOrder(ctx, run, printed)
				printing.Lock()
				defer printing.Unlock()
				return printer.print(lines)
			})
		}()
	}
	for range runs {
		if err := <-errs; err != nil && agent.KindOf(err) != agent.KindNotFound {
			return err
		}
	}
	return nil
}

// orderTime is how long the lines of an agent wait for those of the agents whose ends it waited for. Of one that was started again
// there are more.
const orderTime = time.Second

// inOrder waits until the lines of the agents whose ends a run waits for are printed.
func inOrder(ctx context.Context, run agent.Run, printed map[string]chan struct{}) {
	patience, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	for _, text := range run.Spec.After {
		if name, condition, err := agent.SplitAfter(text); err == nil && condition == agent.AfterEnded && printed[name] != nil {
			select {
			case <-printed[name]:
			case <-patience.Done():
			}
		}
	}
}

// agentOf is the name of a run's agent in its team.
func agentOf(run agent.Run) string { return run.Spec.Labels[policies.LabelAgent] }
