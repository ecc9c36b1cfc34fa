package methods

import "clove.run/clove/api"

// The methods about cloved itself.
var (
	Info = api.Row[api.Nothing, api.InfoResult]{Name: "daemon.info", Access: api.AccessMember, Tier: api.Stable,
		Doc: "Describes this cloved: versions, directories, and the number of runs in each state."}

	Summary = api.Row[api.Nothing, api.SummaryResult]{Name: "daemon.summary", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Returns daemon.info with the numbers of events, mailboxes, messages, names, grants and budgets; for root of everybody's, for others of their own."}

	Reload = api.Row[api.Nothing, api.Nothing]{Name: "daemon.reload", Access: api.AccessRoot, Tier: api.Stable, Audit: api.AuditAdmin,
		Doc: "Reads the configuration anew. A file with a mistake changes nothing."}

	Drain = api.Row[api.DrainParams, api.Nothing]{Name: "daemon.drain", Access: api.AccessRoot, Tier: api.Stable, Audit: api.AuditAdmin,
		Doc: "With on, cloved starts nothing more: new runs wait in the queue, and running agents continue. With off, it starts again. The setting survives a restart of cloved."}

	Panic = api.Row[api.PanicParams, api.PanicResult]{Name: "daemon.panic", Access: api.AccessRoot, Tier: api.Stable,
		Doc: "Kills every agent of the installation at once, with the reason in each record, and lets nothing start until it is called with clear. It survives a restart of cloved and of the host."}

	Backup = api.Row[api.BackupParams, api.Nothing]{Name: "daemon.backup", Access: api.AccessRoot, Tier: api.Stable, Errors: []api.Code{api.CodeConflict}, Audit: api.AuditAdmin,
		Doc: "Writes a consistent copy of kernel.db, which cloved alone has open, to a file that does not exist yet. clove backup calls it."}

	Check = api.Row[api.Nothing, api.CheckResult]{Name: "daemon.check", Access: api.AccessRoot, Tier: api.Stable,
		Doc: "Checks kernel.db, which cloved alone has open. clove check calls it."}

	Debug = api.Row[api.DebugParams, api.DebugResult]{Name: "daemon.debug", Access: api.AccessRoot, Tier: api.Experimental,
		Doc: "Returns one part of cloved's internal state (clove debug requests all of them). No part contains an agent's input or output."}

	Cancel = api.Row[api.CancelParams, api.Nothing]{Name: api.MethodCancel, Access: api.AccessMember, Tier: api.Stable,
		Doc: "Cancels a request of the same connection, which is answered with the error cancelled."}
)
