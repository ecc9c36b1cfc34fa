package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/policies/settings"
)

// Flags of clove grant that no other command has.
const (
	flagExpires = "expires"
	flagUses    = "uses"
	flagReason  = "reason"
)

// grantColumns is the order in which tables show grants. Reasons are last: they may be long. That of a
// rule of the network is where it comes from.
var grantColumns = []string{"ID", "GRANT", "EXPIRES", "USES", "GIVER", "PARENT", "MANIFEST", "REASON"}

func grantCommand() command {
	return command{
		task: "decide", runs: completeAll, usage: "show and change what an agent may do",
		verbs: []verb{
			{line: "clove grant list [--json] AGENT", act: list(agents.GrantList).columns(grantColumns...)},
			{line: "clove grant give [--expires TIME] [--uses N] [--reason TEXT] AGENT GRANT", also: []string{flagJSON},
				act: ask(methods.GrantGive).shows(says(func(_ *line, given api.GrantResult) string { return given.Grant.ID }))},
			{line: "clove grant revoke AGENT GRANT|ID...", act: onCloved(grantRevoke)},
			{line: "clove grant check [--json] AGENT WHAT", act: ask(agents.GrantCheck).shows(showGrantCheck)},
			{line: "clove grant export AGENT ID", act: by(grantExport)},
			{line: "clove grant verify [--json] FILE KEY", act: prints(grantVerify)},
		},
		description: "AGENT is the name or id of a run. A GRANT is KIND:PATTERN[:RIGHTS], for example tool:fetch, state:/namespace/notes:ro or\n" +
			"net:api.example.com:443. give prints the new grant's id. revoke also takes what was derived from the grant, and\n" +
			"prints the ids of all. check uses nothing up; its exit status is 1 if the agent may not do it.\n" +
			"export prints a signed statement that the grant exists now; the key is made at first use, and verify needs the file\n" +
			"grant/public.pem of the directory keys in --root. A statement is for people and other programs: clove never accepts\n" +
			"it as a right. Only root exports.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagExpires, Usage: "give: how long it holds, such as 10m, or until when, such as 2026-01-02T15:04:05Z", DefaultText: "until the run is removed"},
			&cli.StringFlag{Name: flagUses, Usage: "give: how often it can be used", DefaultText: "any number"},
			&cli.StringFlag{Name: flagReason, Usage: "give: why, for people and the audit log"},
			jsonFlag("write the grants, the answer or the statement as JSON"),
		},
	}
}

// expiry is the form of a time at which something ends.
func expiry(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "never"
	case !now.Before(at):
		return "expired"
	}
	return "in " + lasted(at.Sub(now).Round(time.Second))
}

// readExpires reads a point in time, or how long from now on.
func readExpires(text string) (time.Time, error) {
	now := time.Now()
	if when, ok := parseTime(text, now.Location()); ok {
		return when, nil
	}
	span, err := settings.ParseClock(flagExpires, text)
	if err != nil || span == 0 {
		return time.Time{}, invalid(flagExpires, "write how long, such as 10m, or a time such as 2026-01-02T15:04:05Z", "%q is not a time", text)
	}
	return now.Add(span), nil
}

func readUses(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > grant.UsesMost {
		return 0, invalid(flagUses, "write a whole number from 1 on", "%q is not a number of uses", text)
	}
	return n, nil
}

// grantRevoke takes grants by their ids, or all with a text.
func grantRevoke(s *screen, c *cli.Context, d *client.Client) error {
	run := c.Args().Get(1)
	gone := map[string]bool{}
	for _, what := range c.Args().Slice()[2:] {
		ids, err := grantsCalled(c, d, run, what)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if gone[id] { // it went with one that it was derived from
				continue
			}
			revoked, err := client.Do(c.Context, d, agents.GrantRevoke, api.GrantRevokeParams{RunParams: api.RunParams{Run: run}, ID: id})
			if err != nil {
				return err
			}
			for _, id := range revoked.Revoked {
				gone[id] = true
				fmt.Fprintln(s.out, printable(id))
			}
		}
	}
	return nil
}

// grantsCalled returns the ids of a run's grants with this text, oldest first. An id means
// itself.
func grantsCalled(c *cli.Context, d *client.Client, run, what string) ([]string, error) {
	if !strings.Contains(what, ":") {
		return []string{what}, nil
	}
	scope, err := grant.Parse(what)
	if err != nil {
		return nil, err
	}
	grants, err := client.Collect(client.All(c.Context, d, agents.GrantList, api.GrantListParams{RunParams: api.RunParams{Run: run}}))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, g := range grants {
		if g.Grant == scope.String() && g.Rule == "" {
			ids = append(ids, g.ID)
		}
	}
	if len(ids) == 0 {
		return nil, noSuchGrant(run, what)
	}
	return ids, nil
}

func noSuchGrant(run, what string) error {
	return &agent.Error{Kind: agent.KindNotFound, Step: "grant", Message: fmt.Sprintf("%.64q has no grant %.128q", run, what), Hint: "clove grant list " + printable(run) + " shows those that it has"}
}

// showGrantCheck says whether the agent may do it, also by the exit status.
func showGrantCheck(s *screen, l *line, answer api.GrantCheckResult) error {
	err := s.answer(l.Context, answer, map[bool]string{true: "allowed", false: "denied"}[answer.Allowed]+": "+answer.Reason)
	if err == nil && !answer.Allowed {
		err = exitStatus(exitFailed)
	}
	return err
}
