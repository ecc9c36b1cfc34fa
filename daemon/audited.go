package daemon

import (
	"encoding/json"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
)

// audited are the methods that change something or reach into a sandbox, with the kind of
// their record. Those about grants and budgets, and panic, write their own.
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
	if !is || d.entries == nil {
		return
	}
	e := audit.Entry{Kind: kind, Owner: run.Owner.UID, Namespace: run.Spec.Kernel.Namespace, Agent: run.Spec.Name, Run: run.Spec.ID,
		Principal: audit.PrincipalUser(peer.owner.UID), Method: m.Name, Verdict: audit.VerdictAllow, Digest: audit.Digest(params)}
	if run.Spec.ID == "" && m.Access != api.AccessRoot {
		e.Owner = peer.owner.UID // it is the caller's own affair
	}
	e.What = "sha256:" + e.Digest
	if reason := policyReason(m.Name, params); reason != "" {
		e.What = reason
	}
	if err != nil {
		e.Verdict, e.Code = audit.VerdictDeny, faultOf(err).Data.Word
	}
	_ = d.entries(e) // the log counts what it cannot take
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
