package api

import (
	"encoding/json"
	"strings"
)

// Version is the contract's own: it rises when a method or a field is added.
const Version = 1

// DefaultSocket is where cloved listens and clove looks.
const DefaultSocket = "/run/clove/clove.sock"

// Access says who may call a method. Only root and members of cloved's group get as far as
// a connection to cloved. An agent has a socket of its own (docs/kernel.md).
type Access string

// The access rules.
const (
	AccessMember Access = "member" // everybody who may connect; what a caller does not own is left out
	AccessOwner  Access = "owner"  // root, and who owns the run that the parameters name
	AccessRoot   Access = "root"   // what concerns cloved or the host, and not one run
	AccessAgent  Access = "agent"  // as AccessOwner, and the run's agent over its own socket, which names no run
	AccessSelf   Access = "self"   // the run's agent alone
)

// Callers are those who may call, as a contract lists them: root, member (whoever may connect),
// owner (of the run that the parameters name) and agent.
func (a Access) Callers() []string {
	return map[Access][]string{
		AccessMember: {"root", "member"}, AccessOwner: {"root", "owner"}, AccessRoot: {"root"},
		AccessAgent: {"root", "owner", "agent"}, AccessSelf: {"agent"},
	}[a]
}

// Tier says what a method promises to programs that call it.
type Tier string

// The tiers.
const (
	Stable       Tier = "stable"       // nothing that callers rely on is taken away while Version stays
	Experimental Tier = "experimental" // may change in each release, which CHANGELOG.md says
)

// Shape says what a call looks like on the wire.
type Shape string

// The shapes.
const (
	ShapeCall    Shape = "call"    // one response
	ShapeStream  Shape = "stream"  // notifications, then the response
	ShapeSession Shape = "session" // a stream in both directions on its own connection
)

// Method is one row of the contract.
type Method struct {
	Name   string
	Shape  Shape
	Access Access
	Tier   Tier
	Params any // a zero value of the type
	Result any
	Notes  string // of a stream: its notification's method
	Errors []Code // besides those that every method can give
	Doc    string
}

// Summary is the first sentence of the description.
func (m Method) Summary() string {
	first, _, _ := strings.Cut(m.Doc, ". ")
	return strings.TrimSuffix(first, ".")
}

// ForAgents reports whether an agent may call the method over its own socket.
func (m Method) ForAgents() bool { return m.Access == AccessAgent || m.Access == AccessSelf }

// AgentParams returns a pointer to empty parameters of a method for agents, nil for another
// one. It is apart from Methods so that clove-gate contains the types of no other parameters.
func AgentParams(method string) any {
	switch method {
	case MethodAgentGet, MethodBudgetGet, MethodModelQueue:
		return &RunParams{}
	case MethodAgentListen:
		return &Nothing{}
	case MethodGrantList:
		return &GrantListParams{}
	case MethodGrantDerive:
		return &GrantDeriveParams{}
	case MethodGrantRevoke:
		return &GrantRevokeParams{}
	case MethodGrantCheck:
		return &GrantCheckParams{}
	case MethodAuditRead:
		return &AuditReadParams{}
	case MethodBudgetReserve:
		return &BudgetReserveParams{}
	case MethodBudgetSettle:
		return &BudgetSettleParams{}
	case MethodBudgetRelease:
		return &BudgetReleaseParams{}
	case MethodBudgetCharge:
		return &BudgetChargeParams{}
	}
	return nil
}

// CommonErrors can come from every method.
var CommonErrors = []Code{CodeParams, CodeInternal, CodeDenied, CodeBusy, CodeCancelled, CodeStorage, CodeDraining}

// Find returns the row of a method.
func Find(name string) (Method, bool) {
	for _, m := range Methods {
		if m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

// onRun are the errors of a method that is about one run.
var onRun = []Code{CodeNotFound, CodeConflict}

// Methods is the contract.
var Methods = []Method{
	{MethodInfo, ShapeCall, AccessMember, Stable, Nothing{}, InfoResult{}, "", nil,
		"Describes this cloved: versions, directories, and the number of runs in each state."},
	{MethodReload, ShapeCall, AccessRoot, Stable, Nothing{}, Nothing{}, "", nil,
		"Reads the configuration anew. A file with a mistake changes nothing."},
	{MethodDrain, ShapeCall, AccessRoot, Stable, DrainParams{}, Nothing{}, "", nil,
		"With on, cloved starts nothing more: new runs wait in the queue, and running agents continue. With off, it starts again. The setting survives a restart of cloved."},
	{MethodPanic, ShapeCall, AccessRoot, Stable, PanicParams{}, PanicResult{}, "", nil,
		"Kills every agent of the installation at once, with the reason in each record, and lets nothing start until it is called with clear. It survives a restart of cloved and of the host."},
	{MethodBackup, ShapeCall, AccessRoot, Stable, BackupParams{}, Nothing{}, "", []Code{CodeConflict},
		"Writes a consistent copy of kernel.db, which cloved alone has open, to a file that does not exist yet. clove backup calls it."},
	{MethodCheck, ShapeCall, AccessRoot, Stable, Nothing{}, CheckResult{}, "", nil,
		"Checks kernel.db, which cloved alone has open. clove check calls it."},
	{MethodDebug, ShapeCall, AccessRoot, Experimental, DebugParams{}, DebugResult{}, "", nil,
		"Returns one part of cloved's internal state (clove debug requests all of them). No part contains an agent's input or output."},
	{MethodCancel, ShapeCall, AccessMember, Stable, CancelParams{}, Nothing{}, "", nil,
		"Cancels a request of the same connection, which is answered with the error cancelled."},
	{MethodGuard, ShapeCall, AccessRoot, Experimental, GuardParams{}, Nothing{}, "", []Code{CodeConflict, CodeUnenforceable},
		"Applies network rules in the namespace of an OCI container that does not execute yet, and answers when they are in force. clove-oci calls it, and removes the rules when the container is deleted; they do not depend on cloved's life."},
	{MethodContainer, ShapeCall, AccessRoot, Experimental, ContainerParams{}, Nothing{}, "", []Code{CodeConflict},
		"Stores the record of an OCI container; clove-oci reports those whose annotations ask for a record. It becomes an ended run of root's that can be listed, shown, waited for and removed, and nothing else. The same container's next record replaces it. Beyond a thousand, the oldest are removed."},

	{MethodRunStart, ShapeCall, AccessMember, Stable, StartParams{}, RunResult{}, "", []Code{CodeConflict, CodeUnenforceable},
		"Stores a run and starts it as the queue allows. The answer comes when the agent executes, or at once with state queued and the reason if it has to wait for more than other starts."},
	{MethodRunList, ShapeCall, AccessMember, Stable, ListParams{}, ListResult{}, "", nil,
		"Lists the caller's runs, newest first, without their environment; root sees all. An answer has a part of them: if there are more it has next, and the same request with that as after returns the following part."},
	{MethodRunGet, ShapeCall, AccessOwner, Stable, RunParams{}, RunResult{}, "", []Code{CodeNotFound},
		"Returns everything that is known of one run. Values of the environment that look like secrets are redacted, here and in every answer with a run."},
	{MethodRunWait, ShapeCall, AccessOwner, Stable, RunParams{}, WaitResult{}, "", []Code{CodeNotFound},
		"Answers with the record when the run has ended and no policy starts it again."},
	{MethodRunRemove, ShapeCall, AccessOwner, Stable, RemoveParams{}, Nothing{}, "", onRun,
		"Removes a run that has ended or waits: record, layer, log and name. With force, a live run is killed first."},
	{MethodRunRename, ShapeCall, AccessOwner, Stable, RenameParams{}, RunResult{}, "", onRun,
		"Renames a run that does not execute."},
	{MethodRunPrune, ShapeCall, AccessMember, Stable, Nothing{}, PruneResult{}, "", nil,
		"Removes the caller's ended runs; for root, all ended runs."},

	{MethodRunStop, ShapeCall, AccessOwner, Stable, StopParams{}, Nothing{}, "", onRun,
		"Ends a run: TERM, the grace period, then KILL to every process. Answers when it has ended. Its restart policy and schedule are suspended until run.restart."},
	{MethodRunSignal, ShapeCall, AccessOwner, Stable, SignalParams{}, Nothing{}, "", onRun,
		"Sends the agent a signal. KILL ends all of its processes. KILL and TERM suspend its restart policy. So does policy, which ends it with status policy-kill."},
	{MethodRunRestart, ShapeCall, AccessOwner, Stable, RestartParams{}, RunResult{}, "", onRun,
		"Ends the run if it lives, and starts it again with the files that it wrote. A waiting run is started now, if there is room. Its policy and its schedule are active again."},
	{MethodRunPause, ShapeCall, AccessOwner, Stable, RunParams{}, Nothing{}, "", onRun,
		"Freezes every process of a live run. Its wall clock continues."},
	{MethodRunResume, ShapeCall, AccessOwner, Stable, RunParams{}, Nothing{}, "", onRun,
		"Resumes a paused run."},
	{MethodRunUpdate, ShapeCall, AccessOwner, Stable, UpdateParams{}, RunResult{}, "", []Code{CodeNotFound, CodeConflict, CodeUnenforceable},
		"Changes limits and network rules of a live run: everything that is named, or nothing."},
	{MethodRunStats, ShapeCall, AccessOwner, Stable, RunParams{}, StatsResult{}, "", onRun,
		"Returns what a live run uses now and has used since its start. A figure that this host cannot supply is absent."},
	{MethodRunProcesses, ShapeCall, AccessOwner, Stable, RunParams{}, ProcessesResult{}, "", onRun,
		"Lists the processes of a live run, with the ids that they have inside."},

	{MethodRunLogs, ShapeStream, AccessOwner, Stable, LogsParams{}, Nothing{}, NoteLogLine, onRun,
		"Returns the run's output, line by line, as run.log notifications; with follow until it has ended and is not restarted."},
	{MethodRunAttach, ShapeSession, AccessOwner, Stable, AttachParams{}, AttachResult{}, NoteOutput, onRun,
		"Attaches to the streams of a live run: its output from now on, and its input if it keeps one open. Detaching changes nothing for the agent."},
	{MethodRunExec, ShapeSession, AccessOwner, Stable, ExecParams{}, ExecResult{}, NoteOutput, onRun,
		"Runs one more process in a live run's sandbox, with the same isolation and limits. It ends with the session."},
	{MethodRunCopyIn, ShapeSession, AccessOwner, Stable, CopyParams{}, Nothing{}, "", onRun,
		"Unpacks the session's input, a tar archive, in a folder of a live run; the agent owns the files."},
	{MethodRunCopyOut, ShapeSession, AccessOwner, Stable, CopyParams{}, Nothing{}, NoteOutput, onRun,
		"Returns a file or folder of a live run as a tar archive."},

	{MethodRunDiff, ShapeStream, AccessOwner, Stable, DiffParams{}, DiffResult{}, NoteChange, onRun,
		"Returns what the run changed in its files, as run.change notifications. lost/ID in place of a run names a layer without a record; run.apply takes it, too. A live run is frozen while it is read, for at most two minutes. Of the host's side of the workspace, the caller sees only what it may read."},
	{MethodRunApply, ShapeStream, AccessOwner, Stable, ApplyParams{}, ApplyResult{}, NoteChange, onRun,
		"Writes the workspace's changes back to the host's directory with the caller's own ids, and reports as run.change notifications what was written and what was refused, and why. A file that a program of the host would execute by itself, such as a git hook (executed_by in a change), that the next agent would follow, such as AGENTS.md (instructs), or that may be either (unknown) is refused unless the parameters allow it. A live run is frozen meanwhile."},

	{MethodAgentGet, ShapeCall, AccessAgent, Experimental, RunParams{}, AgentResult{}, "", onRun,
		"Returns what a run is, what it may do, what it may spend, and how many of its calls were refused."},
	{MethodAgentListen, ShapeCall, AccessSelf, Experimental, Nothing{}, Nothing{}, "", nil,
		"Sends the agent's notifications on this connection from now on: those that waited first. 256 wait at most; then the oldest go, and agent.lost says how many."},

	{MethodGrantList, ShapeCall, AccessAgent, Experimental, GrantListParams{}, GrantListResult{}, "", onRun,
		"Lists what a run may do: the rules of its network that allow something, and its grants, oldest first. If there are more, the answer has next, and the same request with that as after returns the following part."},
	{MethodGrantGive, ShapeCall, AccessOwner, Experimental, GrantGiveParams{}, GrantResult{}, "", onRun,
		"Gives a run a grant. A net grant acts at once on a run that has an agent socket."},
	{MethodGrantDerive, ShapeCall, AccessAgent, Experimental, GrantDeriveParams{}, GrantResult{}, "", onRun,
		"Makes a narrower grant from one that the run holds."},
	{MethodGrantRevoke, ShapeCall, AccessAgent, Experimental, GrantRevokeParams{}, GrantRevokeResult{}, "", onRun,
		"Takes a grant back, with all that was derived from it. An agent may revoke only what it derived itself."},
	{MethodGrantCheck, ShapeCall, AccessAgent, Experimental, GrantCheckParams{}, GrantCheckResult{}, "", onRun,
		"Says whether a run may do one thing, and why; of the network what its gate would decide, by its rules and its grants. Nothing is used up."},

	{MethodBudgetGet, ShapeCall, AccessAgent, Experimental, RunParams{}, BudgetResult{}, "", onRun,
		"Returns every budget that the run spends from."},
	{MethodBudgetReserve, ShapeCall, AccessAgent, Experimental, BudgetReserveParams{}, BudgetReserveResult{}, "", []Code{CodeBudget, CodeNotFound, CodeConflict},
		"Sets amounts of own dimensions aside, all or none."},
	{MethodBudgetSettle, ShapeCall, AccessAgent, Experimental, BudgetSettleParams{}, BudgetResult{}, "", onRun,
		"Says what was used of a reservation; the rest is free again. More than was reserved counts as with budget.charge."},
	{MethodBudgetRelease, ShapeCall, AccessAgent, Experimental, BudgetReleaseParams{}, BudgetResult{}, "", onRun,
		"Frees a reservation of which nothing was used."},
	{MethodBudgetCharge, ShapeCall, AccessAgent, Experimental, BudgetChargeParams{}, BudgetResult{}, "", onRun,
		"Records what was used of own dimensions. It may exceed the run's own limit, because it has happened; then at_end is done. In accounts above the run it counts at most what is left of that limit and there; a run without a limit of its own is refused what is not left there, and every run where nothing is."},
	{MethodBudgetRaise, ShapeCall, AccessOwner, Experimental, BudgetRaiseParams{}, BudgetResult{}, "", onRun,
		"Adds to what is granted to a run. A run that was paused for it goes on."},
	{MethodBudgetReset, ShapeCall, AccessOwner, Experimental, BudgetResetParams{}, BudgetResult{}, "", onRun,
		"Sets what a run has used of dimensions back to zero."},

	{MethodBudgetSet, ShapeCall, AccessMember, Experimental, BudgetSetParams{}, BudgetResult{}, "", nil,
		"Sets what all runs of a user, of a namespace or with a name may spend together, or with reset what they have used back to zero. Root sets the budget of a user, and a user those below it; only root changes or resets a limit that another user set."},
	{MethodBudgetList, ShapeCall, AccessMember, Experimental, BudgetListParams{}, BudgetListResult{}, "", []Code{CodeNotFound},
		"Lists what accounts may spend and have spent, with all accounts below them. If there are more, the answer has next, and the same request with that as after returns the following part."},
	{MethodBudgetReport, ShapeCall, AccessMember, Experimental, BudgetReportParams{}, BudgetReportResult{}, "", nil,
		"Returns what users' runs spent by day and dimension, for the last 400 days on which something was spent; of everybody's for root, of one's own for others. If there is more, the answer has next, and the same request with that as after returns the following part."},
	{MethodBudgetTop, ShapeCall, AccessMember, Experimental, BudgetTopParams{}, BudgetTopResult{}, "", nil,
		"Returns which runs spent most of each dimension in the last minute; of everybody's for root, of one's own for others."},

	{MethodModelQueue, ShapeCall, AccessAgent, Experimental, RunParams{}, ModelQueueResult{}, "", onRun,
		"Returns the run's calls of models that wait for their turn: the position of each, and how long it is expected to wait."},
	{MethodModelList, ShapeCall, AccessMember, Experimental, Nothing{}, ModelListResult{}, "", nil,
		"Lists the language models that the caller may use, with who serves them and how that goes."},
	{MethodModelPrices, ShapeCall, AccessMember, Experimental, Nothing{}, ModelPricesResult{}, "", nil,
		"Returns what the tokens of models cost, with date and source. Rows for a provider that the caller may not use are left out."},
	{MethodModelTest, ShapeCall, AccessRoot, Experimental, ModelTestParams{}, ModelTestResult{}, "", []Code{CodeNotFound},
		"Makes one small call of a model, as an agent would but from no budget, and says how it went. A call that failed is a result, with failure. It takes two minutes at most."},
	{MethodModelTop, ShapeCall, AccessMember, Experimental, Nothing{}, ModelTopResult{}, "", nil,
		"Returns which runs use models now, and what they used in the last minute; everybody's for root, one's own for others. Runs without cloved are not among them."},

	{MethodAuditRead, ShapeCall, AccessAgent, Experimental, AuditReadParams{}, AuditReadResult{}, "", onRun,
		"Returns records of the audit log about a namespace of the run's owner. An agent needs a grant of kind audit that covers it. If there is more, the answer has next, and the same request with that as after returns the following part, which may be empty."},
	{MethodAuditQuery, ShapeStream, AccessMember, Experimental, AuditQueryParams{}, AuditQueryResult{}, NoteAuditRecord, nil,
		"Returns records of the audit log, as audit.record notifications: those about the caller's runs and namespaces, to root all. Nothing is verified: root does that with clove audit verify."},

	{MethodKernelAttach, ShapeStream, AccessRoot, Experimental, KernelParams{}, Nothing{}, NoteStanding, onRun,
		"A supervisor's: makes the run's grants and budgets ready, and returns how it stands, now and after each change."},
	{MethodKernelCall, ShapeCall, AccessRoot, Experimental, KernelCallParams{}, json.RawMessage(nil), "", onRun,
		"A supervisor's: a call of the run's agent. The result is that of the method."},
	{MethodKernelMeter, ShapeCall, AccessRoot, Experimental, KernelMeterParams{}, Nothing{}, "", onRun,
		"A supervisor's: what the Linux kernel has counted of a run."},

	{MethodEventFollow, ShapeStream, AccessMember, Stable, EventParams{}, EventResult{}, NoteEvent, nil,
		"Returns what happened to runs, numbered, as event.happened notifications. Continue from the number of the last one, also after a restart of cloved."},
}
