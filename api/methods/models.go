package methods

import "clove.run/clove/api"

// The methods about language models (docs/models.md).
var (
	ModelList = api.Row[api.Nothing, api.ModelListResult]{Name: "model.list", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the language models that the caller may use, with the providers that serve them and their state."}

	ModelPrices = api.Row[api.Nothing, api.ModelPricesResult]{Name: "model.prices", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Returns what the tokens of models cost, with date and source. Rows for a provider that the caller may not use are left out."}

	ModelTest = api.Row[api.ModelTestParams, api.ModelTestResult]{Name: "model.test", Access: api.AccessRoot, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound}, Audit: api.AuditAdmin,
		Doc: "Makes one small call of a model, as an agent would but from no budget, and says how it went. A call that failed is a result, with failure. It takes two minutes at most."}

	ModelTop = api.Row[api.Nothing, api.ModelTopResult]{Name: "model.top", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Returns which runs use models now, and what they used in the last minute; everybody's for root, one's own for others. Runs without cloved are not among them."}
)
