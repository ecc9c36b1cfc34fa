package kernel

import (
	"encoding/json"

	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/grant"
)

// Bounds of one answer: it fits into a line of an agent's, and an agent that asks for what is
// not there has a few thousand records looked at, not the whole log.
const (
	auditInAnswer = 40
	auditBytes    = 40 << 10
	auditScanned  = 2000
)

// auditRead returns records about a namespace of the run's owner. An agent needs a grant for
// it; the owner sees them anyway.
func (c *call) auditRead(p api.AuditReadParams) (any, error) {
	what, err := grant.NewScope(grant.Audit, p.Namespace, grant.NoRights)
	if err != nil {
		return nil, err
	}
	c.about = what.String()
	if c.Agent {
		held, err := effective(c.tx, c.Run.Spec.ID)
		if err != nil {
			return nil, err
		}
		by, reason, ok := grant.Check(held, what, c.now)
		if !ok {
			return nil, api.Failure(api.CodeDenied, "ask the owner for a grant of "+what.String(), "%s", reason)
		}
		c.rule = by.ID
	}
	c.verdict = audit.VerdictAllow
	return c.kernel.auditPage(c.Run.Owner.UID, what.Pattern(), p.After)
}

// auditPage reads for one caller at a time: what an agent has read costs the host's time, not
// its own.
func (k *Kernel) auditPage(owner uint32, namespace string, after uint64) (any, error) {
	if !k.reading.TryLock() {
		return nil, api.Failure(api.CodeBusy, "", "another agent reads the audit log")
	}
	defer k.reading.Unlock()
	page, err := audit.ReadPage(k.config.LogDir, audit.Filter{Owner: &owner, Namespace: namespace, After: after}, auditInAnswer, auditScanned)
	if err != nil {
		return nil, err
	}
	result := api.AuditReadResult{Records: []json.RawMessage{}, Next: page.Next}
	size := 0
	for _, e := range page.Entries {
		text, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		if size += len(text); size > auditBytes && len(result.Records) > 0 {
			result.Next = e.Number - 1
			break
		}
		result.Records = append(result.Records, text)
	}
	return result, nil
}
