package main

import (
	"cmp"
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
	"clove.run/clove/policies/build"
)

// Flags of clove grant that no other command has.
const (
	flagExpires = "expires"
	flagUses    = "uses"
	flagReason  = "reason"
)

const grantName = "grant"

// grantWords are what clove grant does.
var grantWords = map[string]word{
	"list":   {flags: []string{flagJSON}, least: 1, do: onCloved((*program).grantList)},
	"give":   {flags: []string{flagExpires, flagUses, flagReason, flagJSON}, least: 2, do: onCloved((*program).grantGive)},
	"revoke": {least: 2, most: anyNumber, do: onCloved((*program).grantRevoke)},
	"check":  {flags: []string{flagJSON}, least: 2, do: onCloved((*program).grantCheck)},
	"export": {least: 2, do: (*program).grantExport},
	"verify": {flags: []string{flagJSON}, least: 2, do: (*program).grantVerify},
}

// onCloved is the action of a word that needs cloved.
func onCloved(do func(*program, *cli.Context, *client.Client) error) func(*program, *cli.Context) error {
	return func(p *program, c *cli.Context) error {
		return p.withCloved(func(c *cli.Context, d *client.Client) error { return do(p, c, d) })(c)
	}
}

func (p *program) grantCommand() *cli.Command {
	return &cli.Command{
		Name: grantName, Usage: "show and change what an agent may do",
		UsageText: "clove grant list [--json] AGENT\nclove grant give [--expires TIME] [--uses N] [--reason TEXT] AGENT GRANT\n" +
			"clove grant revoke AGENT GRANT|ID...\nclove grant check [--json] AGENT WHAT\nclove grant export AGENT ID\nclove grant verify [--json] FILE KEY",
		Description: "AGENT is the name or id of a run. A GRANT is KIND:PATTERN[:RIGHTS], for example tool:fetch, state:/notes:ro or\n" +
			"net:api.example.com:443. give prints the new grant's id. revoke also takes what was derived from the grant, and\n" +
			"prints the ids of all. check uses nothing up; its exit status is 1 if the agent may not do it.\n" +
			"export prints a signed statement that the grant exists now; the key is made at first use, and verify needs the file\n" +
			"grant/public.pem of the directory keys in --root. A statement is for people and other programs: clove never accepts\n" +
			"it as a right. Only root exports.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagExpires, Usage: "give: how long it holds, such as 10m, or until when, such as 2026-01-02T15:04:05Z", DefaultText: "until the run is removed"},
			&cli.StringFlag{Name: flagUses, Usage: "give: how often it can be used", DefaultText: "any number"},
			&cli.StringFlag{Name: flagReason, Usage: "give: why, for people and the audit log"},
			jsonFlag("write the grants, the answer or the statement as JSON"),
		},
		Action: p.grant,
	}
}

func (p *program) grant(c *cli.Context) error {
	return p.doWord(c, grantWords, "clove grant list, give, revoke, check, export or verify; clove grant --help shows what follows each")
}

func (p *program) grantList(c *cli.Context, d *client.Client) error {
	grants, err := client.Collect(client.All(c.Context, d, agents.GrantList, api.GrantListParams{RunParams: api.RunParams{Run: c.Args().Get(1)}}))
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(append([]api.Grant{}, grants...))
	}
	rows := grantRows(grants, time.Now())
	return p.printFitting(rows, len(rows[0])-1)
}

// grantRows is the table of grants. Reasons are last: they may be long. That of a rule of the
// network is where it comes from.
func grantRows(grants []api.Grant, now time.Time) [][]string {
	rows := [][]string{{"ID", "GRANT", "EXPIRES", "USES", "GIVER", "PARENT", "REASON"}}
	for _, g := range grants {
		rows = append(rows, []string{g.ID, g.Grant, expiry(g.Expires, now), uses(g.UsesLeft), g.Giver, g.Parent, cmp.Or(g.Reason, g.Rule)})
	}
	return rows
}

func expiry(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "never"
	case !now.Before(at):
		return "expired"
	}
	return "in " + lasted(at.Sub(now).Round(time.Second))
}

func uses(left *int64) string {
	if left == nil {
		return "any"
	}
	return strconv.FormatInt(*left, 10)
}

func (p *program) grantGive(c *cli.Context, d *client.Client) error {
	give := api.GrantGiveParams{RunParams: api.RunParams{Run: c.Args().Get(1)}, Grant: c.Args().Get(2), Reason: c.String(flagReason)}
	var err error
	if give.Expires, err = parseExpires(c.String(flagExpires), time.Now()); err != nil {
		return err
	}
	if give.Uses, err = parseUses(c.String(flagUses)); err != nil {
		return err
	}
	given, err := client.Do(c.Context, d, methods.GrantGive, give)
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(given.Grant)
	}
	_, err = fmt.Fprintln(p.out, printable(given.Grant.ID))
	return err
}

// parseExpires reads a point in time, or how long from now on.
func parseExpires(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if when, ok := parseTime(text, now.Location()); ok {
		return when, nil
	}
	span, err := build.ParseClock(flagExpires, text)
	if err != nil || span == 0 {
		return time.Time{}, invalid(flagExpires, "write how long, such as 10m, or a time such as 2026-01-02T15:04:05Z", "%q is not a time", text)
	}
	return now.Add(span), nil
}

// parseUses returns nil for any number.
func parseUses(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > grant.UsesMost {
		return nil, invalid(flagUses, "write a whole number from 1 on", "%q is not a number of uses", text)
	}
	return &n, nil
}

// grantRevoke takes grants by their ids, or all with a text.
func (p *program) grantRevoke(c *cli.Context, d *client.Client) error {
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
				fmt.Fprintln(p.out, printable(id))
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

func (p *program) grantCheck(c *cli.Context, d *client.Client) error {
	answer, err := client.Do(c.Context, d, agents.GrantCheck, api.GrantCheckParams{RunParams: api.RunParams{Run: c.Args().Get(1)}, What: c.Args().Get(2)})
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		err = p.printJSON(answer)
	} else {
		word := "denied"
		if answer.Allowed {
			word = "allowed"
		}
		_, err = fmt.Fprintln(p.out, printable(word+": "+answer.Reason))
	}
	if err == nil && !answer.Allowed {
		err = exitStatus(exitFailed)
	}
	return err
}
