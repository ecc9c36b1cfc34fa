package daemon

import (
	"cmp"
	"encoding/json"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
)

// audited are the methods that change something or reach into a sandbox, with the kind of
// their record. Those about grants and budgets, and panic, write their own; what
// is refused before budget.set decides is recorded here.
var audited = map[string]audit.Kind{
	api.MethodModelTest: audit.KindAdmin, // it costs money
	api.MethodReload:    audit.KindAdmin, api.MethodDrain: audit.KindAdmin, api.MethodBackup: audit.KindAdmin, api.MethodGuard: audit.KindAdmin,

	api.MethodRunStart: audit.KindAdmin, api.MethodRunRemove: audit.KindAdmin, api.MethodRunRename: audit.KindAdmin, api.MethodRunPrune: audit.KindAdmin,
	api.MethodRunStop: audit.KindAdmin, api.MethodRunSignal: audit.KindAdmin, api.MethodRunRestart: audit.KindAdmin, api.MethodRunPause: audit.KindAdmin,
	api.MethodRunResume: audit.KindAdmin, api.MethodRunUpdate: audit.KindLimit, api.MethodRunApply: audit.KindAdmin,
	api.MethodRunAttach: audit.KindAdmin, api.MethodRunExec: audit.KindExec, api.MethodRunCopyIn: audit.KindAdmin, api.MethodRunCopyOut: audit.KindAdmin,
}

// audit records who called a method that is audited, and how it went. run is empty where the
// method is about none, or the caller may not see it. The record follows what was done: the
// supervisor, the store and the Linux kernel do not wait for it.
func (d dispatcher) audit(peer caller, m api.Method, run agent.Run, params json.RawMessage, err error) {
	kind, is := audited[m.Name]
	if m.Name == api.MethodBudgetSet { // the Kernel records what is done
		kind, is = audit.KindAdmin, err != nil
	}
	if !is || d.entries == nil {
		return
	}
	e := audit.Entry{Kind: kind, Owner: run.Owner.UID, Namespace: run.Spec.Kernel.Namespace, Agent: run.Spec.Name, Run: run.Spec.ID,
		Principal: audit.PrincipalUser(peer.owner.UID), Method: m.Name, Verdict: audit.VerdictAllow, Digest: audit.Digest(params)}
	if run.Spec.ID == "" && m.Access != api.AccessRoot {
		e.Owner = peer.owner.UID // it is the caller's own affair
	}
	e.What = cmp.Or(policyReason(m.Name, params), budgetText(m.Name, params), "sha256:"+e.Digest)
	if err != nil {
		data := faultOf(err).Data
		e.Verdict, e.Code, e.Rule = audit.VerdictDeny, data.Word, data.Rule
	}
	_ = d.entries(e) // the log counts what it cannot take
}

// budgetText is what is recorded of budget.set instead of a digest: the account and what was to
// change. It is empty for everything else.
func budgetText(method string, params json.RawMessage) string {
	var p api.BudgetSetParams
	if method != api.MethodBudgetSet || json.Unmarshal(params, &p) != nil {
		return ""
	}
	return p.Text()
}

// policyReason is what is recorded of the signal POLICY instead of a digest: why the run was to
// end. It is empty for everything else.
func policyReason(method string, params json.RawMessage) string {
	var p api.SignalParams
	if method != api.MethodRunSignal || json.Unmarshal(params, &p) != nil || !p.Policy || agent.ValidateReason(p.Reason) != nil {
		return ""
	}
	return strings.TrimSuffix("signal POLICY: "+p.Reason, ": ")
}
