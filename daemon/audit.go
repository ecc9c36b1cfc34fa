package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/kernel/service"
)

// auditQuery returns records of the audit log. It reads files, as long as the log is, so the
// places for it are few.
func (s *shared) auditQuery(on *service.Call, p api.AuditQueryParams) (result api.AuditQueryResult, out service.Outcome, err error) {
	c := on.Context.(*request)
	filter, err := s.auditFilter(c, p)
	if err != nil {
		return result, out, err
	}
	leave, err := s.audits.enter(c, c.peer.owner.UID)
	if err != nil {
		return result, out, err
	}
	defer leave()
	result.Last = s.log.State().Records
	send := func(e audit.Entry) error {
		if err := c.Err(); err != nil {
			return err
		}
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return c.note(api.NoteAuditRecord, api.AuditRecordNote{ID: c.id, Record: line})
	}
	out.Recorded = true // what follows is no refusal
	// Records that are written between the two readings come behind the last one that was there.
	err = audit.Query(s.logDir, filter, func(e audit.Entry) error {
		if e.Number > result.Last {
			return nil
		}
		return send(e)
	})
	if err != nil || !p.Follow {
		return result, out, err
	}
	leave() // to follow costs only what is written
	filter.After = max(filter.After, result.Last)
	if err := audit.Follow(c, s.logDir, filter, send); !errors.Is(err, context.Canceled) {
		return result, out, err
	}
	return result, out, c.Err()
}

// auditFilter is what a caller asked for, of what it may see: root all, and everybody else
// what is about its own runs and namespaces.
func (s *shared) auditFilter(c *request, p api.AuditQueryParams) (audit.Filter, error) {
	f := audit.Filter{Owner: p.Owner, Namespace: p.Namespace, Run: agent.ID(p.Run), Kind: audit.Kind(p.Kind), Verdict: p.Verdict,
		Since: p.Since, Until: p.Until, Text: p.Text, After: p.After, Last: p.Last}
	if p.Last < 0 || p.Last > auditLast {
		return f, api.Failure(api.CodeParams, "ask for all, and read them in parts with after", "last: %d is not a number from 0 to %d", p.Last, auditLast)
	}
	if run, err := s.cache.resolve(p.Run, c.peer.principal); err == nil && p.Run != "" {
		f.Run = run.Spec.ID // else it is gone, and meant by its id
	}
	if c.peer.root() {
		return f, nil
	}
	uid := c.peer.owner.UID
	if p.Owner != nil && *p.Owner != uid {
		return f, api.Failure(api.CodeDenied, "leave the owner out", "user %d sees no records of user %d", uid, *p.Owner)
	}
	f.Owner = &uid
	return f, nil
}

// auditLast bounds how many records are held in memory for one answer.
const auditLast = 10_000

// auditTick is how often the audit log is held to its bounds.
const auditTick = 10 * time.Minute

// keepAudit removes what is not kept of the audit log, and of what has no record, now and then,
// until ctx ends.
func (d *Daemon) keepAudit(ctx context.Context) {
	tick := time.NewTicker(auditTick)
	defer tick.Stop()
	before := uint64(0)
	for {
		removed, err := d.shared.log.Remove(d.config().auditKept())
		switch {
		case err != nil:
			d.log.Error("old records of the audit log cannot be removed", "error", err)
		case removed > before && before > 0:
			d.log.Info("old records of the audit log are removed", "up_to", removed)
		}
		before = max(before, removed, 1)
		d.dropLost(time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// gauges are those of the audit log and of agents' sockets.
func (s *shared) gauges(set func(name string, value float64, labels ...string)) {
	var log audit.State
	var queued, sockets int
	if s != nil { // else it does not serve yet
		log, queued, sockets = s.log.State(), s.kernel.Waiting(), s.kernel.Sockets()
	}
	set(metrics.AuditRecords, float64(log.Records))
	set(metrics.AuditWaiting, float64(log.Waiting))
	set(metrics.AuditQueued, float64(queued))
	set(metrics.AgentSockets, float64(sockets))
	var n api.Counts
	if s != nil {
		var err error
		if n, err = s.kernel.Counts(nil, nil); err != nil {
			return // as for a store that cannot be read
		}
	}
	for name, value := range map[string]int{metrics.Mailboxes: n.Mailboxes, metrics.MailMessages: n.Messages, metrics.MailDead: n.DeadLetters, metrics.JobQueues: n.Queues, metrics.Names: n.Names,
		metrics.Grants: n.Grants, metrics.Accounts: n.Budgets, metrics.AccountsSpent: n.Spent, metrics.Approvals: n.Approvals} {
		set(name, float64(value))
	}
	for state, value := range n.Jobs.ByState() {
		set(metrics.Jobs, float64(value), state)
	}
}
