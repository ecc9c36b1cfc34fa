package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/signal"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/client"
	"clove.run/clove/cmd/clove/verbs"
)

// auditTailed is how many records clove audit tail shows unless --last says it.
const auditTailed = 20

func (p auditVerbs) query(c *cli.Context) error {
	filter, err := p.filter(c)
	if err != nil {
		return err
	}
	err = audit.Query(auditDir(c), filter, auditPrinter(p.screen, c))
	if errors.Is(err, fs.ErrPermission) {
		return p.ask(c, filter, false)
	}
	return err
}

// ask has cloved read the log, for a member of its group: a user sees what is about its
// own runs.
func (p auditVerbs) ask(c *cli.Context, f audit.Filter, follow bool) error {
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	ctx, stop := signal.NotifyContext(c.Context, unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	defer stop()
	show := auditPrinter(p.screen, c)
	params := api.AuditQueryParams{Owner: f.Owner, Namespace: f.Namespace, Run: string(f.Run), Kind: string(f.Kind), Verdict: f.Verdict,
		Since: f.Since, Until: f.Until, Text: f.Text, After: f.After, Last: f.Last, Follow: follow}
	_, err = client.Each(ctx, d, methods.AuditQuery, params, func(n api.AuditRecordNote) error {
		var e audit.Entry
		if err := json.Unmarshal(n.Record, &e); err != nil {
			return err
		}
		return show(e)
	})
	if follow && ctx.Err() != nil {
		return nil // it was interrupted
	}
	return err
}

// tail shows the last records, and with --follow each new one until it is interrupted.
func (p auditVerbs) tail(c *cli.Context) error {
	filter, err := p.filter(c)
	if err != nil {
		return err
	}
	if filter.Last == 0 {
		filter.Last = auditTailed
	}
	show := auditPrinter(p.screen, c)
	// Records written between the two readings come behind the last record that was there.
	last, err := audit.Last(auditDir(c))
	if errors.Is(err, fs.ErrPermission) {
		return p.ask(c, filter, c.Bool(flagFollow))
	}
	if err != nil {
		return err
	}
	err = audit.Query(auditDir(c), filter, func(e audit.Entry) error {
		if e.Number > last {
			return nil
		}
		return show(e)
	})
	if err != nil || !c.Bool(flagFollow) {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	defer stop()
	filter.After = max(filter.After, last)
	if err := audit.Follow(ctx, auditDir(c), filter, show); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// filter reads the flags. Records have a run's ID: root's clove finds it by the name, and
// cloved does for others.
func (p auditVerbs) filter(c *cli.Context) (audit.Filter, error) {
	var f audit.Filter
	err := verbs.Fill(&f, inputs(), givenFlags(c))
	if err != nil || f.Run == "" || f.Run.Valid() {
		return f, err
	}
	h, err := p.host()
	if err != nil || h.UID != 0 {
		return f, err
	}
	b, err := p.backend(c)
	if err != nil {
		return f, err
	}
	run, err := b.Get(string(f.Run))
	f.Run = run.Spec.ID
	return f, err
}

// auditPrinter shows one record, as JSON if that is asked for.
func auditPrinter(s *screen, c *cli.Context) func(audit.Entry) error {
	asJSON := c.Bool(flagJSON)
	return func(e audit.Entry) error {
		if asJSON {
			return writeLine(s.out, e)
		}
		_, err := fmt.Fprintln(s.out, auditLine(e))
		return err
	}
}

// auditLine is one line for people; texts may come from agents.
func auditLine(e audit.Entry) string {
	parts := []string{strconv.FormatUint(e.Number, 10), e.Time.Local().Format("2006-01-02T15:04:05.000"), string(e.Kind)}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+value)
		}
	}
	add("", e.Verdict)
	add("", e.Method)
	add("", e.What)
	add("owner=", strconv.FormatUint(uint64(e.Owner), 10))
	add("namespace=", e.Namespace)
	add("agent=", e.Agent)
	add("run=", string(e.Run))
	add("by=", e.Principal)
	add("rule=", e.Rule)
	add("code=", e.Code)
	add("reason=", e.Reason)
	add("taints=", strings.Join(e.Taints, ","))
	add("approval=", e.Approval)
	if e.Count > 0 {
		add("count=", strconv.FormatUint(e.Count, 10))
	}
	return printable(strings.Join(parts, " "))
}
