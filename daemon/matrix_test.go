package daemon

import (
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// passes means every answer that does not depend on the caller.
const passes = api.Code(0)

// row has the answers for root, for the run's owner, and for another member of the group.
// Others cannot connect.
type row struct {
	root, owner, member api.Code
	params              string // besides the run's name; "-": it names none
}

var (
	forAll   = row{passes, passes, passes, "-"}
	forOwner = row{passes, passes, api.CodeNotFound, ""}
	forRoot  = row{passes, api.CodeDenied, api.CodeDenied, "-"}
	forAgent = row{api.CodeDenied, api.CodeDenied, api.CodeDenied, "-"} // the agent alone
)

// with returns a row for a method that needs more parameters than a run.
func (r row) with(params string) row { r.params = params; return r }

// matrix is the access matrix of the whole contract, written by hand.
var matrix = map[string]row{
	methods.Info.Name:   forAll,
	methods.Reload.Name: forRoot,
	methods.Drain.Name:  forRoot,
	methods.Panic.Name:  forRoot.with(`-"clear":true`),
	methods.Backup.Name: forRoot.with(`-"file":"/"`),
	methods.Check.Name:  forRoot,
	methods.Debug.Name:  forRoot.with(`-"part":"versions"`),
	methods.Guard.Name:  forRoot.with(`-"guard":{"directory":"/run/one","pid":7,"start":1,"network":"none","rules":[]}`),
	api.MethodCancel:    forAll.with(`-"id":"none"`),

	methods.Container.Name: forRoot.with(`-"container":{"id":"one","directory":"/run/one"},"record":{"version":1,"id":"one","status":"exited","started":"2026-01-02T12:00:00Z"}`),

	methods.RunStart.Name:  forAll.with("-start"),
	methods.RunList.Name:   forAll,
	methods.RunPrune.Name:  forAll,
	methods.RunGet.Name:    forOwner,
	methods.RunWait.Name:   forOwner,
	methods.RunRemove.Name: forOwner,
	methods.RunRename.Name: forOwner.with(`,"name":"renamed"`),

	methods.RunStop.Name:      forOwner,
	methods.RunSignal.Name:    forOwner.with(`,"signal":1`),
	methods.RunRestart.Name:   forOwner,
	methods.RunPause.Name:     forOwner,
	methods.RunResume.Name:    forOwner,
	methods.RunUpdate.Name:    forOwner.with(`,"update":{}`),
	methods.RunStats.Name:     forOwner,
	methods.RunProcesses.Name: forOwner,

	methods.RunLogs.Name:    forOwner,
	methods.RunAttach.Name:  forOwner,
	methods.RunExec.Name:    forOwner.with(`,"exec":{"command":["true"]}`),
	methods.RunCopyIn.Name:  forOwner.with(`,"path":"/"`),
	methods.RunCopyOut.Name: forOwner.with(`,"path":"/"`),
	methods.RunDiff.Name:    forOwner,
	methods.RunApply.Name:   forOwner,

	methods.HomeList.Name:   forAll,
	methods.HomeRemove.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"home":"none"`},

	// GRANT, RESERVATION, ID and RUNNAME are of what the run has, see rig.shares.
	agents.AgentGet.Name:     forOwner,
	agents.AgentListen.Name:  forAgent,
	agents.AgentReady.Name:   forAgent,
	agents.AgentCollect.Name: forAgent,
	agents.AgentFetch.Name:   forAgent,
	agents.AgentApply.Name:   forAgent,
	agents.AgentSpawn.Name:   forAgent,
	agents.AgentWait.Name:    forAgent,
	agents.AgentSignal.Name:  forAgent,
	agents.AgentResult.Name:  forAgent,
	agents.AgentList.Name:    forOwner,
	agents.AgentTree.Name:    forOwner,

	methods.ManifestAdd.Name:    row{api.CodeParams, api.CodeParams, api.CodeParams, `-"name":"no name","spec":{}`},
	methods.ManifestList.Name:   forAll,
	methods.ToolAdd.Name:        row{api.CodeParams, api.CodeParams, api.CodeParams, `-"tool":{"name":"no name"}`},
	methods.ToolShow.Name:       row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"tool":"none"`},
	methods.ToolKept.Name:       forAll,
	methods.ToolRemove.Name:     row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"tool":"none"`},
	methods.ManifestRemove.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"name":"none"`},

	agents.AgentHandoff.Name:  forAgent,
	agents.AgentAccept.Name:   forAgent,
	agents.AgentWithdraw.Name: forAgent,
	agents.AgentOffers.Name:   forAgent,

	agents.MailSend.Name:    forAgent,
	agents.MailReceive.Name: forAgent,
	agents.StateGet.Name:    forAgent,
	agents.StateSet.Name:    forAgent,
	agents.StateDelete.Name: forAgent,
	agents.StateList.Name:   forAgent,
	agents.StateWatch.Name:  forAgent,
	agents.BlobOpen.Name:    forAgent,
	agents.BlobWrite.Name:   forAgent,
	agents.BlobClose.Name:   forAgent,
	agents.BlobTake.Name:    forAgent,
	agents.BlobRead.Name:    forAgent,
	agents.BlobSave.Name:    forAgent,
	agents.MailAck.Name:     forAgent,
	agents.MailReply.Name:   forAgent,
	agents.MailAnswer.Name:  forAgent,

	agents.MailSubscribe.Name:   forAgent,
	agents.MailUnsubscribe.Name: forAgent,
	agents.MailPublish.Name:     forAgent,

	methods.SecretSet.Name:    row{api.CodeParams, api.CodeParams, api.CodeParams, `-"name":"x","terms":{"hosts":["api.example.com"]}`},
	methods.SecretRotate.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"name":"none"`},
	methods.SecretRemove.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"name":"none"`},
	methods.SecretList.Name:   forAll,
	methods.SecretCheck.Name:  forAll,
	methods.SecretUses.Name:   forAll,
	methods.SecretUse.Name:    row{api.CodeNotFound, api.CodeDenied, api.CodeDenied, `-"run":"none","secret":"x","host":"x:443","method":"GET","path":"/"`},
	methods.SecretOpen.Name:   row{api.CodeNotFound, api.CodeDenied, api.CodeDenied, `-"run":"none"`},

	methods.ApprovalAsk.Name:     row{api.CodeNotFound, api.CodeDenied, api.CodeDenied, `-"run":"none","kind":"net","what":"x","rule":"x"`},
	methods.ApprovalUse.Name:     row{api.CodeNotFound, api.CodeDenied, api.CodeDenied, `-"run":"none","id":"none"`},
	methods.ApprovalGet.Name:     row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"id":"none"`},
	methods.ApprovalList.Name:    forAll,
	methods.ApprovalRespond.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `,"id":"none","digest":"x"`},
	agents.ApprovalOwn.Name:      forAgent,
	agents.ApprovalCancel.Name:   forAgent,

	methods.MailBoxes.Name:   forAll,
	methods.MailRead.Name:    row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"mailbox":"none"`},
	methods.MailPost.Name:    row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"to":"none","body":1`},
	methods.MailDead.Name:    forAll,
	methods.MailRequeue.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"id":"none"`},
	methods.MailDiscard.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"id":"none"`},

	agents.JobAdd.Name:       forAgent,
	agents.JobClaim.Name:     forAgent,
	agents.JobRenew.Name:     forAgent,
	agents.JobComplete.Name:  forAgent,
	agents.JobFail.Name:      forAgent,
	agents.JobGet.Name:       forAgent,
	agents.JobList.Name:      forAgent,
	agents.QueueOpen.Name:    forAgent,
	agents.QueueClose.Name:   forAgent,
	methods.JobsAdd.Name:     row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"queue":"none","body":1`},
	methods.JobsList.Name:    forAll,
	methods.JobsShow.Name:    row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"id":"none"`},
	methods.JobsRetry.Name:   row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"id":"none"`},
	methods.JobsCancel.Name:  row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"id":"none"`},
	methods.QueueAdd.Name:    forAll.with(`-"name":"builds"`),
	methods.QueueList.Name:   forAll,
	methods.QueueRemove.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"name":"none"`},

	agents.NameRegister.Name: forAgent,
	agents.NameRelease.Name:  forAgent,
	agents.NameLookup.Name:   forAgent,
	agents.NameList.Name:     forAgent,
	methods.NameReserve.Name: forAll.with(`-"name":"reviews"`),
	methods.NameQuery.Name:   forAll,
	methods.NameRemove.Name:  row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"name":"none"`},

	agents.GrantList.Name:   forOwner,
	agents.ToolList.Name:    forOwner,
	agents.ToolCall.Name:    row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `,"tool":"none"`},
	agents.GrantCheck.Name:  forOwner.with(`,"what":"tool:fetch"`),
	methods.GrantGive.Name:  forOwner.with(`,"grant":"tool:fetch"`),
	agents.GrantDerive.Name: forOwner.with(`,"from":"GRANT","grant":"tool:fetch"`),
	agents.GrantRevoke.Name: forOwner.with(`,"id":"GRANT"`),

	agents.BudgetGet.Name:     forOwner,
	agents.ModelQueue.Name:    forOwner,
	agents.BudgetReserve.Name: forOwner.with(`,"amounts":{"reviews":1}`),
	agents.BudgetSettle.Name:  forOwner.with(`,"reservation":"RESERVATION","amounts":{"reviews":1}`),
	agents.BudgetRelease.Name: forOwner.with(`,"reservation":"RESERVATION"`),
	agents.BudgetCharge.Name:  forOwner.with(`,"amounts":{"reviews":1}`),
	methods.BudgetRaise.Name:  forOwner.with(`,"amounts":{"reviews":1}`),
	methods.BudgetReset.Name:  forOwner.with(`,"dimensions":["reviews"]`),
	methods.BudgetSet.Name:    row{passes, passes, api.CodeDenied, `-"account":"64001/name:RUNNAME","limits":["reviews=1"]`},
	methods.BudgetList.Name:   forAll,
	methods.BudgetReport.Name: forAll,
	methods.BudgetTop.Name:    forAll,

	methods.ModelList.Name:   forAll,
	methods.ModelPrices.Name: forAll,
	methods.ModelTest.Name:   row{api.CodeNotFound, api.CodeDenied, api.CodeDenied, `-"model":"none"`},
	methods.ModelTop.Name:    forAll,

	methods.BlobUpload.Name: row{passes, passes, api.CodeDenied, `-"owner":64001,"bytes":1`},
	methods.BlobPart.Name:   row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"upload":"0123456789abcdef","offset":0,"data":"YQ=="`},
	methods.BlobFinish.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"upload":"0123456789abcdef"`},
	methods.BlobList.Name:   row{passes, passes, api.CodeDenied, `-"owner":64001`},
	methods.BlobFetch.Name:  row{api.CodeNotFound, api.CodeNotFound, api.CodeDenied, `-"owner":64001,"blob":"none"`},

	methods.StateQuery.Name:  row{passes, passes, api.CodeDenied, `-"owner":64001`},
	methods.StateRead.Name:   row{passes, passes, api.CodeDenied, `-"owner":64001,"path":"a"`},
	methods.StateWrite.Name:  row{passes, passes, api.CodeDenied, `-"owner":64001,"path":"a","value":1`},
	methods.StateRemove.Name: row{passes, passes, api.CodeDenied, `-"owner":64001,"path":"a"`},

	methods.AuditQuery.Name: forAll,
	methods.Summary.Name:    forAll,
	methods.AuditTrace.Name: row{api.CodeNotFound, api.CodeNotFound, api.CodeNotFound, `-"id":"none"`},
	agents.EventAppend.Name: forAgent,
	agents.EventTrace.Name:  forAgent,
	agents.AuditRead.Name:   forOwner.with(`,"namespace":"acme"`),

	methods.KernelAttach.Name: forRoot.with(`-"run":"ID"`),
	methods.KernelServe.Name:  forRoot.with(`-"run":"ID"`),
	methods.KernelCall.Name:   forRoot.with(`-"run":"ID","method":"agent.get"`),
	methods.KernelMeter.Name:  forRoot.with(`-"run":"ID","start":1,"totals":{"cpu_ms":1}`),

	methods.EventFollow.Name: forAll,
}

// TestMatrixIsComplete: each method has a row.
func TestMatrixIsComplete(t *testing.T) {
	t.Parallel()
	for _, m := range methods.All() {
		if _, there := matrix[m.Name]; !there {
			t.Errorf("%s has no row in the access matrix", m.Name)
		}
	}
	for name := range matrix {
		if _, known := methods.Find(name); !known {
			t.Errorf("%s has a row and is no method", name)
		}
	}
}
