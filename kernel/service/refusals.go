package service

import (
	"cmp"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
)

// refused records a call that was not done. The entry may be lost if the process is killed
// within the next moment; the log says then that some are.
func (e *Engine) refused(c *Call, err error) {
	if a := e.attachmentOf(c.Run.Spec.ID); a != nil && c.Agent {
		a.refused.Add(1)
	}
	entry := c.entry(audit.VerdictDeny)
	data := api.ErrorOf(err).Data
	entry.Code, entry.Rule = data.Word, data.Rule
	e.enqueue(entry)
	if c.Agent {
		// Its other events are of what was not done.
		c.out.Events = nil
		c.out.Happened(agent.RunRefused, fmt.Sprintf("%s: %s: %s", entry.Code, c.Method, cmp.Or(entry.What, "unreadable")))
		e.noteAll(c)
	}
}

// checked records a decision that changed nothing, as refused does.
func (e *Engine) checked(c *Call) { e.enqueue(c.entry(c.out.Verdict)) }

// enqueue hands over the entry of a call that changed nothing. Where the call named nothing
// that could be read, the entry has the digest of what it sent.
func (e *Engine) enqueue(entry audit.Entry) {
	entry.What = cmp.Or(entry.What, "sha256:"+entry.Digest)
	_ = e.config.Log.Enqueue(entry) // nothing was changed, and the log counts what it cannot take
}

// Refuse records that a service of clove's own was refused what it wanted for a run.
func (e *Engine) Refuse(entry audit.Entry, err error) {
	data := api.ErrorOf(err).Data
	entry.Verdict, entry.Code, entry.Rule = audit.VerdictDeny, data.Word, cmp.Or(data.Rule, entry.Rule)
	e.enqueue(entry)
}
