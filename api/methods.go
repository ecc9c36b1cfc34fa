package api

// Version is the contract's own: it rises when a method or a field is added.
const Version = 1

// DefaultSocket is where cloved listens and clove looks.
const DefaultSocket = "/run/clove/clove.sock"

// Access says who may call a method. Only root and members of cloved's group
// get as far as a connection.
type Access string

// The access rules.
const (
	AccessMember Access = "member" // everybody who may connect; what a caller does not own is left out
	AccessOwner  Access = "owner"  // root, and who owns the run that the parameters name
	AccessRoot   Access = "root"
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
	Params any // a zero value of the type
	Result any
	Notes  string // of a stream: its notification's method
	Errors []Code // besides those that every method can give
	Doc    string
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
	{MethodInfo, ShapeCall, AccessMember, Nothing{}, InfoResult{}, "", nil,
		"What this cloved is: versions, directories, and how many runs there are in each state."},
	{MethodReload, ShapeCall, AccessRoot, Nothing{}, Nothing{}, "", nil,
		"Reads the configuration anew. A file with a mistake changes nothing."},
	{MethodDrain, ShapeCall, AccessRoot, DrainParams{}, Nothing{}, "", nil,
		"With on, nothing is started any more, and what is asked for waits in the queue; what runs goes on. Without, starts go on. It outlives a restart of cloved."},
	{MethodDebug, ShapeCall, AccessRoot, DebugParams{}, DebugResult{}, "", nil,
		"What cloved is doing inside, one part after the other (clove debug asks for all). No part holds what an agent was given or wrote."},
	{MethodCancel, ShapeCall, AccessMember, CancelParams{}, Nothing{}, "", nil,
		"Ends a request of the same connection, which is answered with the error cancelled."},
	{MethodGuard, ShapeCall, AccessRoot, GuardParams{}, Nothing{}, "", []Code{CodeConflict, CodeUnenforceable},
		"Makes network rules hold in the namespace of a container that an engine made and that does not execute yet, and answers when they do. clove-oci asks for it, and takes the rules back when the container is deleted; a cloved that ends changes nothing."},
	{MethodContainer, ShapeCall, AccessRoot, ContainerParams{}, Nothing{}, "", []Code{CodeConflict},
		"Keeps the record of a container that an engine ran with clove-oci, which tells of those whose annotations ask for a record. It becomes an ended run of root's that can be listed, shown, waited for and removed, and nothing else. The same container's next record replaces it, and of more than a thousand the oldest go."},

	{MethodRunStart, ShapeCall, AccessMember, StartParams{}, RunResult{}, "", []Code{CodeConflict, CodeUnenforceable},
		"Stores a run and starts it when its turn comes. The answer comes when the agent executes, or with state queued and the reason when it has to wait for more than other starts."},
	{MethodRunList, ShapeCall, AccessMember, ListParams{}, ListResult{}, "", nil,
		"The caller's runs, newest first, without their environment; root sees all. An answer holds a part of them: where there are more it has next, and the same request with that as after gives the following part."},
	{MethodRunGet, ShapeCall, AccessOwner, RunParams{}, RunResult{}, "", []Code{CodeNotFound},
		"All that is known of one run. Values of the environment that look like secrets are redacted, here and wherever a run is answered."},
	{MethodRunWait, ShapeCall, AccessOwner, RunParams{}, WaitResult{}, "", []Code{CodeNotFound},
		"Answers with the record when the run has ended, and no policy starts it again."},
	{MethodRunRemove, ShapeCall, AccessOwner, RemoveParams{}, Nothing{}, "", onRun,
		"Forgets a run that has ended or waits: record, layer, log and name. With force a live one is killed first."},
	{MethodRunRename, ShapeCall, AccessOwner, RenameParams{}, RunResult{}, "", onRun,
		"Gives a run that does not execute another name."},
	{MethodRunPrune, ShapeCall, AccessMember, Nothing{}, PruneResult{}, "", nil,
		"Removes the caller's ended runs; of root all."},

	{MethodRunStop, ShapeCall, AccessOwner, StopParams{}, Nothing{}, "", onRun,
		"Ends a run: TERM, its grace, then KILL of all. Answers when it has ended. Its restart policy and schedule rest until run.restart."},
	{MethodRunSignal, ShapeCall, AccessOwner, SignalParams{}, Nothing{}, "", onRun,
		"Sends the agent a signal. KILL ends all of its processes; after KILL and TERM its restart policy rests."},
	{MethodRunRestart, ShapeCall, AccessOwner, RestartParams{}, RunResult{}, "", onRun,
		"Ends the run if it lives, and starts it again with the files that it wrote. One that waits is started now, if there is a place. Its policy and its schedule hold again."},
	{MethodRunPause, ShapeCall, AccessOwner, RunParams{}, Nothing{}, "", onRun,
		"Freezes every process of a live run. Its wall clock goes on."},
	{MethodRunResume, ShapeCall, AccessOwner, RunParams{}, Nothing{}, "", onRun,
		"Lets a paused run go on."},
	{MethodRunUpdate, ShapeCall, AccessOwner, UpdateParams{}, RunResult{}, "", []Code{CodeNotFound, CodeConflict, CodeUnenforceable},
		"Changes limits and network rules of a live run: all that is named, or nothing."},
	{MethodRunStats, ShapeCall, AccessOwner, RunParams{}, StatsResult{}, "", onRun,
		"What a live run uses now and has used since its start. A figure that this host cannot supply is absent."},
	{MethodRunProcesses, ShapeCall, AccessOwner, RunParams{}, ProcessesResult{}, "", onRun,
		"The processes of a live run, with the ids that they have inside."},

	{MethodRunLogs, ShapeStream, AccessOwner, LogsParams{}, Nothing{}, NoteLogLine, onRun,
		"The run's output, line by line, as run.log notifications; with follow until it has ended for good."},
	{MethodRunAttach, ShapeSession, AccessOwner, AttachParams{}, AttachResult{}, NoteOutput, onRun,
		"Joins the streams of a live run: its output from now on, and its input where it keeps one open. Leaving changes nothing for the agent."},
	{MethodRunExec, ShapeSession, AccessOwner, ExecParams{}, ExecResult{}, NoteOutput, onRun,
		"Runs one more process in a live run's sandbox, held to the same walls and limits. It ends with the session."},
	{MethodRunCopyIn, ShapeSession, AccessOwner, CopyParams{}, Nothing{}, "", onRun,
		"Unpacks the tar archive of the session's input in a folder of a live run; the files are the agent's."},
	{MethodRunCopyOut, ShapeSession, AccessOwner, CopyParams{}, Nothing{}, NoteOutput, onRun,
		"Gives a file or folder of a live run as a tar archive."},

	{MethodRunDiff, ShapeStream, AccessOwner, RunParams{}, DiffResult{}, NoteChange, onRun,
		"What the run changed in its files, as run.change notifications. A live one stands still while it is read, at most two minutes. Of the host's side of the workspace the caller learns what it may see."},
	{MethodRunApply, ShapeStream, AccessOwner, ApplyParams{}, ApplyResult{}, NoteChange, onRun,
		"Writes the workspace's changes back to the host's directory with the caller's own ids, and tells as run.change notifications what was made and what was refused, and why. What a program of the host's would execute by itself, such as a git hook (executed_by in a change), is refused unless the parameters allow it. A live run stands still meanwhile."},

	{MethodEventFollow, ShapeStream, AccessMember, EventParams{}, EventResult{}, NoteEvent, nil,
		"What happened to runs, numbered, as event.happened notifications. The number of the last one is where to go on, also after a restart of cloved."},
}
