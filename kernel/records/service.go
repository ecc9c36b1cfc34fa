package records

import (
	"encoding/json"
	"sync"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
)

// Bounds of one answer: it fits into a line of an agent's, and an agent that asks for what is
// not there has a few thousand records looked at, not the whole log.
const (
	inAnswer = 40
	maxBytes = 40 << 10
	scanned  = 2000
)

// Records is the service. Dir is where the log lies.
type Records struct {
	Dir string

	reading sync.Mutex // held while an agent has the log read
}

// Service returns its methods.
func (r *Records) Service() *service.Service {
	return service.New("audit").On(
		service.Read(agents.AuditRead, service.Stages[api.AuditReadParams]{Covers: api.AuditReadParams.Names, About: api.AuditReadParams.About}, r.read))
}

// read returns records about a namespace of the run's owner, who sees them without a grant.
func (r *Records) read(c *service.Call, p api.AuditReadParams) (result api.AuditReadResult, out service.Outcome, err error) {
	what, err := grant.NewScope(grant.Audit, p.Namespace, grant.NoRights)
	if err != nil {
		return result, out, err
	}
	out.About, out.Verdict = what.String(), audit.VerdictAllow
	result, err = r.page(c.Run.Owner.UID, what.Pattern(), p.After)
	return result, out, err
}

// page reads for one caller at a time: a read of an agent costs the host's time, not its own.
func (r *Records) page(owner uint32, namespace string, after uint64) (result api.AuditReadResult, err error) {
	if !r.reading.TryLock() {
		return result, api.Failure(api.CodeBusy, "", "another agent reads the audit log")
	}
	defer r.reading.Unlock()
	page, err := audit.ReadPage(r.Dir, audit.Filter{Owner: &owner, Namespace: namespace, After: after}, inAnswer, scanned)
	if err != nil {
		return result, err
	}
	result = api.AuditReadResult{Records: []json.RawMessage{}, Next: page.Next}
	size := 0
	for _, e := range page.Entries {
		text, err := json.Marshal(e)
		if err != nil {
			return result, err
		}
		if size += len(text); size > maxBytes && len(result.Records) > 0 {
			result.Next = e.Number - 1
			break
		}
		result.Records = append(result.Records, text)
	}
	return result, nil
}
