package methods

import "clove.run/clove/api"

// The methods about kept homes.
var (
	HomeList = api.Row[api.Nothing, api.HomesResult]{Name: "home.list", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the homes that are kept for runs with Files.Home: those of the caller, to root all. Nothing in a home is read for that."}

	HomeRemove = api.Row[api.HomeParams, api.Nothing]{Name: "home.remove", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict}, Audit: api.AuditAdmin,
		Doc: "Removes a kept home that no run has. Root removes everybody's by their ids."}
)
