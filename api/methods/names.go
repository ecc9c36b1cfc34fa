package methods

import "clove.run/clove/api"

// The methods of users about names.
var (
	NameReserve = api.Row[api.NameReserveParams, api.NameResult]{Name: "name.reserve", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeBusy, api.CodeConflict, api.CodeNotFound},
		Doc: "Keeps a name of the caller's, or for root of a user's, also while no run holds it: mail to it waits for a run that does. With a manifest, mail with wake starts a run of it. A repetition replaces the tags and the manifest."}

	NameQuery = api.Row[api.NameQueryParams, api.NameListResult]{Name: "name.query", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the names of the caller's namespaces, to root all, with the runs that hold them. If there are more, the answer has next, and the same request with that as after returns the following part."}

	NameRemove = api.Row[api.NameRemoveParams, api.Nothing]{Name: "name.remove", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Takes a name from all runs that hold it, and ends its reservation. A name whose mailbox is not empty is not removed."}
)
