package methods

import (
	"encoding/json"

	"clove.run/clove/api"
)

// The methods of supervisors, which have the figures and the calls from the Linux kernel and from the agent.
var (
	KernelAttach = api.Row[api.KernelParams, api.Nothing]{Name: "kernel.attach", Shape: api.ShapeStream, Access: api.AccessRoot, Tier: api.Experimental, Notes: api.NoteStanding, Errors: api.RunErrors,
		Doc: "A supervisor's: makes the run's grants and budgets ready, and returns how it stands, now and after each change."}

	KernelServe = api.Row[api.KernelServeParams, api.Nothing]{Name: "kernel.serve", Shape: api.ShapeSession, Access: api.AccessRoot, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "A supervisor's: answers the calls of the run's agent. cloved says `kernel.ready`, the supervisor passes a descriptor of the channel to the agent's gate with one byte, and the session lasts while cloved serves the calls."}

	KernelCall = api.Row[api.KernelCallParams, json.RawMessage]{Name: "kernel.call", Access: api.AccessRoot, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "A supervisor's: one call in the name of the run's agent. The result is that of the method."}

	KernelMeter = api.Row[api.KernelMeterParams, api.Nothing]{Name: "kernel.meter", Access: api.AccessRoot, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "A supervisor's: what the Linux kernel has counted of a run."}
)
