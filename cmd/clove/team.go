package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

const (
	flagReplace = "replace"
	flagKeep    = "keep"
)

// teams are the commands about several agents of one file. What is known of a team is its runs:
// cloved has them with their labels, digests and order.
type teams program

func upCommand() command {
	return command{
		task: "run", usage: "start a team of agents from one file",
		verbs: []verb{{line: "clove up [-d] [--replace] TEAM.yaml", act: of(teams.up)}},
		description: "Starts what is missing of the team, starts again what failed or was stopped, and leaves the rest as it is. Then it\n" +
			"prints what the agents write, each line behind the agent's name, until all have ended; ctrl-c ends them in the\n" +
			"reverse order. With -d it returns when they are started or queued. The runs are called TEAM.AGENT.\n" +
			"Exit status: 0 if all ended with 0, else that of the first agent that failed.",
		flags: []cli.Flag{
			boolean("", settings.Detach, "d", "return when the agents are started or queued"),
			boolean("", flagReplace, "", "end, remove and start anew what differs from the file, and what comes after it"),
		},
	}
}

func downCommand() command {
	return command{
		task: "run", usage: "end a team of agents, and forget its runs",
		verbs: []verb{{line: "clove down [-t DUR] [--keep] TEAM|TEAM.yaml", act: of(teams.down)}},
		description: "Ends the agents in the reverse order of their starts, then removes their runs: records, layers, logs and names.\n" +
			"Kept homes stay, and so does the account of the namespace with what was spent.",
		flags: []cli.Flag{graceFlag(), boolean("", flagKeep, "", "end them and keep their records, layers and logs")},
	}
}

func (p teams) up(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	team, err := resolve.LoadTeam(c.Args().First(), h)
	if err != nil {
		return err
	}
	specs, err := teamSpecs(team, h) // all of them before anything is done
	if err != nil {
		return err
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	l := &lineup{teams: p, client: d, name: team.Name, file: c.Args().First()}
	if err := l.compare(c.Context, specs, c.Bool(flagReplace)); err != nil {
		return err
	}
	for _, a := range team.Agents {
		if _, err := program(p).addManifests(c, a.Children, h); err != nil {
			return err
		}
	}
	for i, spec := range specs {
		reportReach(p.screen, team.Agents[i].Manifest, spec)
	}
	if err := p.limit(c.Context, d, team); err != nil {
		return err
	}
	if c.Bool(settings.Detach) {
		return l.start(c.Context, func(waits string) { p.say("clove", cyan, waits) })
	}
	p.displayFor(c)
	return l.attached(c)
}

// teamSpecs builds the runs of a team.
func teamSpecs(team *resolve.Team, h host.Host) (specs []agent.Spec, err error) {
	for _, a := range team.Agents {
		var asked resolve.Request
		asked.Values.Set(settings.Name, a.Written.Name)
		if a.Prompt != "" {
			asked.Args = []string{a.Prompt}
		}
		request, err := laid(a.Manifest, asked, nil, h)
		if err != nil {
			return nil, err
		}
		spec, err := resolve.Spec(request, h, agent.NewID())
		if err != nil {
			return nil, a.Mistake(err, nil)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// limit sets what the team may spend, in one change, before its first agent starts.
func (p teams) limit(ctx context.Context, d *client.Client, team *resolve.Team) error {
	if len(team.Budgets) == 0 {
		return nil
	}
	account := accountKey("ns:" + team.Namespace)
	set, err := client.Do(ctx, d, methods.BudgetSet, api.BudgetSetParams{Account: account, Limits: team.Budgets, AtEnd: team.AtEnd})
	for _, line := range set.Budgets {
		of := budget.Dimension(line.Dimension)
		if line.Granted != nil && line.Used > 0 && line.Used >= *line.Granted {
			p.say("clove", cyan, fmt.Sprintf("%s: all of %s of %s is spent; clove budget reset ns:%s %s begins anew", account, of.Show(*line.Granted), of.Title(), team.Namespace, line.Dimension))
		}
	}
	return err
}

// lineup is a team on its way up.
type lineup struct {
	teams
	client *client.Client
	name   string
	file   string
	steps  []teamStep // in the order of starts
}

// teamStep is one agent, and what is to be done for it.
type teamStep struct {
	spec  agent.Spec // its ID is that of the run
	found bool       // there is such a run
	again bool       // it is to be started again
}

// compare decides what is to be done, and removes what differs where that is wanted. Otherwise it is
// refused, and nothing is done.
func (l *lineup) compare(ctx context.Context, specs []agent.Spec, replace bool) error {
	have, err := l.runs(ctx, l.client, func(run agent.Run) bool {
		return ofTeam(run, l.name) || slices.ContainsFunc(specs, func(s agent.Spec) bool { return s.Name == run.Spec.Name })
	})
	if err != nil {
		return err
	}
	var differ []string
	for _, run := range have {
		at := slices.IndexFunc(specs, func(s agent.Spec) bool { return s.Name == run.Spec.Name })
		switch {
		case !ofTeam(run, l.name):
			return &agent.Error{Kind: agent.KindConflict, Message: "there is a run " + run.Spec.Name + ", which is not the team's", Hint: "clove rename " + run.Spec.Name + " NEW, or name the team otherwise"}
		case at < 0 || run.Spec.Manifest != specs[at].Manifest:
			differ = append(differ, run.Spec.Name)
		}
	}
	if len(differ) > 0 && !replace {
		return &agent.Error{Kind: agent.KindConflict, Message: "not as in " + l.file + ": " + strings.Join(differ, ", "),
			Hint: "clove up --" + flagReplace + " starts these anew, with what comes after them; clove down " + l.name + " removes all"}
	}
	gone := behind(have, differ)
	if err := l.end(ctx, l.client, gone, teamEnding{remove: true}); err != nil {
		return err
	}
	for _, spec := range specs {
		step := teamStep{spec: spec}
		for _, run := range have {
			if run.Spec.Name == spec.Name && !slices.ContainsFunc(gone, func(other agent.Run) bool { return other.Spec.ID == run.Spec.ID }) {
				step.spec.ID, step.found = run.Spec.ID, true
				step.again = run.State == agent.StateEnded && (run.Record.ExitCode != 0 || run.Phase() == agent.PhaseStopped)
			}
		}
		l.steps = append(l.steps, step)
	}
	return nil
}

// start starts what is missing, in order, and reports what waits.
func (l *lineup) start(ctx context.Context, report func(waits string)) error {
	for _, step := range l.steps {
		var result api.RunResult
		var err error
		switch id := string(step.spec.ID); {
		case !step.found:
			result, err = client.Do(ctx, l.client, methods.RunStart, api.StartParams{Spec: step.spec, Traceparent: os.Getenv("TRACEPARENT")})
		case step.again:
			result, err = client.Do(ctx, l.client, methods.RunRestart, api.RestartParams{StopParams: api.StopParams{RunParams: api.RunParams{Run: id}}})
		}
		if err != nil {
			f := agent.FailureOf(err)
			return &agent.Error{Kind: agent.KindOf(err), Message: step.spec.Name + ": " + f.Message, Hint: cmp.Or(f.Hint, "clove up "+l.file+" goes on from here")}
		}
		if result.Reason != "" {
			report(step.spec.Name + " waits: " + result.Reason)
		}
	}
	return nil
}

func (p teams) down(c *cli.Context) error {
	name := c.Args().First()
	file := resolve.IsManifest(name)
	if file {
		h, err := p.host()
		if err != nil {
			return err
		}
		team, err := resolve.LoadTeam(name, h)
		if err != nil {
			return err
		}
		name = team.Name
	}
	var grace *int64
	if text := c.String(flagTime); text != "" {
		ns, err := readGrace(text)
		if err != nil {
			return err
		}
		grace = &ns
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	var known []string
	runs, err := p.runs(c.Context, d, func(run agent.Run) bool {
		known = append(known, run.Spec.Labels[policies.LabelTeam])
		return ofTeam(run, name)
	})
	if err != nil {
		return err
	}
	if len(runs) == 0 && !file { // a file says that there is such a team: nothing of it runs
		hint := "clove up TEAM.yaml starts one, and clove ps -a shows what there is"
		if near := meant(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return &agent.Error{Kind: agent.KindNotFound, Message: fmt.Sprintf("no team %q", name), Hint: hint}
	}
	return p.end(c.Context, d, runs, teamEnding{grace: grace, remove: !c.Bool(flagKeep)})
}

// ofTeam reports whether a run is one of the team's.
func ofTeam(run agent.Run, team string) bool {
	return run.Spec.Labels[policies.LabelTeam] == team && run.Spec.Name == team+"."+run.Spec.Labels[policies.LabelAgent]
}

// runs are the caller's runs that are wanted, whole.
func (p teams) runs(ctx context.Context, d *client.Client, wanted func(agent.Run) bool) (runs []agent.Run, err error) {
	for one, err := range client.All(ctx, d, methods.RunList, api.ListParams{All: true, Brief: true}) {
		if err != nil {
			return nil, err
		}
		if one.Run.Owner.UID != uint32(os.Geteuid()) || !wanted(one.Run) {
			continue
		}
		whole, err := client.Do(ctx, d, methods.RunGet, api.RunParams{Run: string(one.Run.Spec.ID)})
		if agent.KindOf(err) == agent.KindNotFound && err != nil {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, whole.Run)
	}
	slices.Reverse(runs) // the list begins with the newest
	return runs, nil
}

// behind are the runs with these names, and all that come after one of them.
func behind(runs []agent.Run, names []string) (all []agent.Run) {
	for _, run := range slices.Backward(levels(runs)) {
		for _, one := range run {
			first := func(after agent.RunName) bool { return slices.Contains(names, after.Name) }
			if slices.Contains(names, one.Spec.Name) || slices.ContainsFunc(one.AfterNames(), first) {
				names, all = append(names, one.Spec.Name), append(all, one)
			}
		}
	}
	return all
}

// levels are the runs in the order in which they are ended: no run comes after one of its own or of
// an earlier level.
func levels(runs []agent.Run) (all [][]agent.Run) {
	left := slices.Clone(runs)
	for len(left) > 0 {
		needed := map[string]bool{}
		for _, run := range left {
			for _, first := range run.AfterNames() {
				needed[first.Name] = true
			}
		}
		last := slices.DeleteFunc(slices.Clone(left), func(run agent.Run) bool { return needed[run.Spec.Name] })
		if len(last) == 0 {
			last = left // a circle, which cloved refuses
		}
		all = append(all, last)
		left = slices.DeleteFunc(left, func(run agent.Run) bool {
			return slices.ContainsFunc(last, func(other agent.Run) bool { return other.Spec.ID == run.Spec.ID })
		})
	}
	return all
}

// teamEnding is how agents of a team are ended.
type teamEnding struct {
	grace  *int64 // nanoseconds; nil: each one's own
	remove bool   // and forgotten
	quiet  bool   // their names are not printed
}

// end ends runs, those that come after others first. Those of one level end at the same time.
func (p teams) end(ctx context.Context, d *client.Client, runs []agent.Run, how teamEnding) (failed error) {
	for _, level := range levels(runs) {
		outcomes := make([]chan error, len(level))
		for i, run := range level {
			outcomes[i] = make(chan error, 1)
			go func() { outcomes[i] <- endOne(ctx, d, run, how) }()
		}
		for i, run := range level {
			err := <-outcomes[i]
			if err == nil && !how.quiet {
				_, err = fmt.Fprintln(p.out, printable(run.Spec.Name))
			}
			failed = cmp.Or(failed, err)
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

func endOne(ctx context.Context, d *client.Client, run agent.Run, how teamEnding) error {
	named := api.RunParams{Run: string(run.Spec.ID)}
	err := client.Perform(ctx, d, methods.RunStop, api.StopParams{RunParams: named, GraceNS: how.grace})
	if err == nil && how.remove {
		err = client.Perform(ctx, d, methods.RunRemove, api.RemoveParams{RunParams: named})
	}
	if err != nil && agent.KindOf(err) == agent.KindNotFound {
		return nil // removed meanwhile
	}
	return err
}
