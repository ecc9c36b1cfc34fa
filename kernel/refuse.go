package kernel

import (
	"cmp"
	"encoding/json"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
)

// refused records a call that was not done. The entry may be lost if the process is killed
// within the next moment; the log says then that some are.
func (c *call) refused(method string, params json.RawMessage, err error) {
	if a := c.kernel.attachmentOf(c.Run.Spec.ID); a != nil && c.Agent {
		a.refused.Add(1)
	}
	e := c.entry(method, audit.VerdictDeny, digestOf(method, params))
	data := api.ErrorOf(err).Data
	e.Code, e.Rule = data.Word, data.Rule
	c.enqueue(e)
	if c.Agent {
		c.events = nil // of what was not done
		c.happened(agent.RunRefused, fmt.Sprintf("%s: %s: %s", e.Code, method, cmp.Or(c.about, "unreadable")))
		c.note()
	}
}

// checked records a decision that changed nothing, as refused does.
func (c *call) checked(method string, params json.RawMessage) {
	c.enqueue(c.entry(method, c.verdict, digestOf(method, params)))
}

// enqueue hands over the entry of a call that changed nothing. Where the call named nothing
// that could be read, the entry has the digest of what it sent.
func (c *call) enqueue(e audit.Entry) {
	e.What = cmp.Or(e.What, "sha256:"+e.Digest)
	_ = c.kernel.config.Log.Enqueue(e) // nothing was changed, and the log counts what it cannot take
}
