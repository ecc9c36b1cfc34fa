package daemon

import (
	"cmp"

	"clove.run/clove/api"
	"clove.run/clove/audit"
)

// audit records the caller and the outcome of a method whose row says so. The request's run is empty where the
// method is about none, or the caller may not see it. The record follows what was done: the
// supervisor, the store and the Linux kernel do not wait for it.
func (d dispatcher) audit(c *request, m api.Method, p parameters, err error) {
	if m.Audit == "" || d.entries == nil {
		return
	}
	peer, run := c.peer, c.run
	e := audit.Entry{Kind: audit.Kind(m.Audit), Owner: run.Owner.UID, Namespace: run.Spec.Kernel.Namespace, Agent: run.Spec.Name, Run: run.Spec.ID,
		Principal: audit.PrincipalUser(peer.owner.UID), Method: m.Name, Verdict: audit.VerdictAllow, Digest: audit.Digest(p.text), Correlation: c.call, Object: string(c.made)}
	if run.Spec.ID == "" && m.Access != api.AccessRoot {
		e.Owner = peer.owner.UID // it is the caller's own affair
	}
	e.What = cmp.Or(auditText(p), "sha256:"+e.Digest)
	if err != nil {
		data := faultOf(err).Data
		e.Verdict, e.Code, e.Rule = audit.VerdictDeny, data.Word, data.Rule
	}
	_ = d.entries(e) // the log counts what it cannot take
}

// auditText is what is recorded of a call instead of a digest, for parameters that have such a
// text; empty: they have none, or could not be read.
func auditText(p parameters) string {
	if text, has := p.value.(interface{ AuditText() string }); has && p.wrong == nil {
		return text.AuditText()
	}
	return ""
}
