package methods

import (
	"sync"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// table is made when it is asked for: a start of clove does not pay for it.
var table = sync.OnceValue(func() api.Table {
	return api.Table{
		Info.Method(),
		Reload.Method(),
		Drain.Method(),
		Panic.Method(),
		Backup.Method(),
		Check.Method(),
		Debug.Method(),
		Cancel.Method(),
		Guard.Method(),
		Container.Method(),
		RunStart.Method(),
		RunList.Method(),
		RunGet.Method(),
		RunWait.Method(),
		RunRemove.Method(),
		RunRename.Method(),
		RunPrune.Method(),
		RunStop.Method(),
		RunSignal.Method(),
		RunRestart.Method(),
		RunPause.Method(),
		RunResume.Method(),
		RunUpdate.Method(),
		RunStats.Method(),
		RunProcesses.Method(),
		RunLogs.Method(),
		RunAttach.Method(),
		RunExec.Method(),
		RunCopyIn.Method(),
		RunCopyOut.Method(),
		RunDiff.Method(),
		RunApply.Method(),
		HomeList.Method(),
		HomeRemove.Method(),
		agents.AgentGet.Method(),
		agents.AgentListen.Method(),
		agents.AgentReady.Method(),
		agents.AgentHandoff.Method(),
		agents.AgentAccept.Method(),
		agents.AgentOffers.Method(),
		agents.AgentSpawn.Method(),
		agents.AgentWait.Method(),
		agents.AgentSignal.Method(),
		agents.AgentList.Method(),
		agents.AgentTree.Method(),
		agents.AgentResult.Method(),
		ManifestAdd.Method(),
		ManifestList.Method(),
		ManifestRemove.Method(),
		agents.AgentCollect.Method(),
		agents.GrantList.Method(),
		GrantGive.Method(),
		agents.GrantDerive.Method(),
		agents.GrantRevoke.Method(),
		agents.GrantCheck.Method(),
		agents.BudgetGet.Method(),
		agents.BudgetReserve.Method(),
		agents.BudgetSettle.Method(),
		agents.BudgetRelease.Method(),
		agents.BudgetCharge.Method(),
		BudgetRaise.Method(),
		BudgetReset.Method(),
		BudgetSet.Method(),
		BudgetList.Method(),
		BudgetReport.Method(),
		BudgetTop.Method(),
		agents.MailSend.Method(),
		agents.MailReceive.Method(),
		agents.MailAck.Method(),
		agents.MailReply.Method(),
		agents.MailAnswer.Method(),
		agents.ModelQueue.Method(),
		ModelList.Method(),
		ModelPrices.Method(),
		ModelTest.Method(),
		ModelTop.Method(),
		agents.AuditRead.Method(),
		AuditQuery.Method(),
		KernelAttach.Method(),
		KernelServe.Method(),
		KernelCall.Method(),
		KernelMeter.Method(),
		EventFollow.Method(),
	}
})

// All returns the rows of this package and of api/agents, in the order of the documents. It is the package's own list: callers change nothing in it.
func All() api.Table { return table() }

// Find returns the row of a method.
func Find(name string) (api.Method, bool) { return table().Find(name) }
