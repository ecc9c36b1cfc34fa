package methods

import "clove.run/clove/api"

// Methods about the tools that users add.
var (
	ToolAdd = api.Row[api.ToolAddParams, api.ToolResult]{Name: "tool.add", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict, api.CodeBusy},
		Doc: "Keeps a tool of the caller's, a command, which agents of the caller's with a grant of its name may call. One of the same name is refused: remove it first."}

	ToolShow = api.Row[api.ToolShowParams, api.ToolResult]{Name: "tool.show", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns a tool of the caller's, or one that is built in."}

	ToolKept = api.Row[api.ToolKeptParams, api.ToolKeptResult]{Name: "tool.kept", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the tools that are built in and those that the caller has added. If there are more, the answer has next, and the same request with that as after returns the following part."}

	ToolRemove = api.Row[api.ToolNameParams, api.Nothing]{Name: "tool.remove", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Forgets a tool of the caller's. Calls that are at work come to their end."}
)
