package methods

import "clove.run/clove/api"

// The methods that clove-oci calls.
var (
	Guard = api.Row[api.GuardParams, api.Nothing]{Name: "network.guard", Access: api.AccessRoot, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict, api.CodeUnenforceable}, Audit: api.AuditAdmin,
		Doc: "Applies network rules in the namespace of an OCI container that does not execute yet, and answers when they are in force. clove-oci calls it, and removes the rules when the container is deleted; they do not depend on cloved's life."}

	Container = api.Row[api.ContainerParams, api.Nothing]{Name: "container.record", Access: api.AccessRoot, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict},
		Doc: "Stores the record of an OCI container; clove-oci reports those whose annotations ask for a record. It becomes an ended run of root's that can be listed, shown, waited for and removed, and nothing else. The same container's next record replaces it. Beyond a thousand, the oldest are removed."}
)
