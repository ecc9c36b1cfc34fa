package api

import "clove.run/clove/agent"

// ModelListResult lists models and aliases in the order of their names.
type ModelListResult struct {
	Models []Model `json:"models"`
}

// Model is a name that agents may use.
type Model struct {
	Name    string        `json:"name"`
	AliasOf string        `json:"alias_of,omitempty"` // the model that it stands for; empty: it is no alias
	Formats []string      `json:"formats"`            // in which it is called, such as openai-chat
	Context int64         `json:"context,omitempty"`  // tokens of input and output together, the least of its targets; 0: unknown
	MaxOut  int64         `json:"max_output,omitempty"`
	Priced  bool          `json:"priced"` // the price at each target is known
	Targets []ModelTarget `json:"targets"`
}

// ModelTarget is one way to serve a model, in the order of trial.
type ModelTarget struct {
	Provider string `json:"provider"`
	Model    string `json:"model"` // the provider's name of it
	Weight   int    `json:"weight"`
	Fallback int    `json:"fallback"`
	Priced   bool   `json:"priced"`
	// Health is ok, failing (its last call failed) or out (several failed in a row, and it is
	// left out for a while). It is empty where nothing serves models.
	Health string `json:"health,omitempty"`
}

// The values of ModelTarget.Health.
const (
	HealthOK      = "ok"
	HealthFailing = "failing"
	HealthOut     = "out"
)

// ModelPricesResult is the table of prices, in the order in which a model's is looked up: the
// first row that fits holds.
type ModelPricesResult struct {
	Prices []ModelPrice `json:"prices"`
}

// ModelPrice is what the tokens of some models cost.
type ModelPrice struct {
	Provider string `json:"provider,omitempty"` // the only provider that it is for; empty: see family
	Family   string `json:"family,omitempty"`   // the format of the providers that it is for; empty: any
	Host     string `json:"host,omitempty"`     // whose servers it is for; empty: any
	Model    string `json:"model"`              // the provider's names; * is any run of characters
	ModelRates
	// Long replaces the rates of a whole call with more than LongAbove tokens of input.
	Long      *ModelRates `json:"long,omitempty"`
	LongAbove int64       `json:"long_above,omitempty"`
	// Tiers are thousandths of the price that a service tier costs, as 500 for half.
	Tiers   map[string]int64 `json:"tiers,omitempty"`
	Date    string           `json:"date"` // when it was read, as 2026-11-23
	Source  string           `json:"source"`
	BuiltIn bool             `json:"built_in"` // it is clove's own, and not of models.yaml
	// Overridden are the providers at which a row above holds in place of this one.
	Overridden []string `json:"overridden,omitempty"`
}

// ModelRates are nano-dollars (10^-9 US dollars) for each token: 2 dollars for a million are
// 2000.
type ModelRates struct {
	In             int64 `json:"in"`
	Cached         int64 `json:"cached"`
	CacheWrite     int64 `json:"cache_write"`
	CacheWriteLong int64 `json:"cache_write_long"` // for the longer of the provider's times
	Out            int64 `json:"out"`
	Reasoning      int64 `json:"reasoning"`
}

// ModelTestParams names a model or alias.
type ModelTestParams struct {
	Model string `json:"model"`
}

// ModelTestResult is how one call of a model went.
type ModelTestResult struct {
	Model        string        `json:"model" col:"MODEL"` // after aliases
	Provider     string        `json:"provider" col:"PROVIDER"`
	Target       string        `json:"target" col:"AS"` // the provider's name of the model
	Format       string        `json:"format" col:"FORMAT"`
	Status       int           `json:"status,omitempty"`                // of HTTP; absent: there was no answer
	FirstNS      int64         `json:"first_ns" col:"FIRST TOKEN,took"` // until the first byte of the answer
	TotalNS      int64         `json:"total_ns" col:"TOTAL,took"`
	TokensIn     int64         `json:"tokens_in" col:"IN"` // without those read from the provider's cache
	TokensCached int64         `json:"tokens_cached" col:"CACHED"`
	TokensOut    int64         `json:"tokens_out" col:"OUT"`
	Reported     bool          `json:"reported"`                               // by the provider; else the tokens are estimated
	CostMicros   *int64        `json:"cost_micros,omitempty" col:"COST,money"` // absent: no price is known
	Failure      *ModelFailure `json:"failure,omitempty"`                      // absent: it went well
}

// ModelFailure is why a call went wrong.
type ModelFailure struct {
	Reason  string `json:"reason"` // one of the reasons below
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// The reasons of ModelFailure.
const (
	FailedUnreachable = "unreachable"
	FailedTLS         = "tls"
	FailedTimeout     = "timeout"
	FailedLost        = "lost" // the connection ended without an answer
	FailedKey         = "key"
	FailedName        = "name" // the provider does not know the model
	FailedBusy        = "busy"
	FailedRefused     = "refused"
	FailedRedirect    = "redirect"
	FailedBroken      = "broken" // the answer is not whole, or none in the format
)

// ModelTopResult lists runs that use models now, at most 100: those with most calls first.
type ModelTopResult struct {
	Runs []ModelRun `json:"runs"`
}

// ModelRun is what a run has under way, and has used in the last minute, since cloved began if
// that is later.
type ModelRun struct {
	ID         agent.ID `json:"id"`
	Name       string   `json:"name" col:"AGENT"`
	Owner      uint32   `json:"owner" col:"OWNER"`
	Namespace  string   `json:"namespace,omitempty" col:"NAMESPACE"`
	Models     []string `json:"models" col:"MODELS"`       // that it has called
	InFlight   int      `json:"in_flight" col:"IN FLIGHT"` // calls
	Waiting    int      `json:"waiting" col:"WAITING"`     // calls that wait for a provider
	Calls      int64    `json:"calls" col:"CALLS"`         // that ended in the last minute
	TokensIn   int64    `json:"tokens_in" col:"IN"`
	TokensOut  int64    `json:"tokens_out" col:"OUT"`
	CostMicros int64    `json:"cost_micros" col:"COST,money"`
}

// ModelQueueResult has the calls of models that wait for their turn: those that wait longest
// first, at most 64.
type ModelQueueResult struct {
	Calls []WaitingCall `json:"calls"`
}

// WaitingCall is a call of a model that a limit lets wait.
type WaitingCall struct {
	Model      string `json:"model"`
	Limit      string `json:"limit"`                 // whose it is: model or provider, or target where a provider named it in an answer
	Position   int    `json:"position"`              // 1: the next
	WaitedMS   int64  `json:"waited_ms"`             // so far
	ExpectedMS *int64 `json:"expected_ms,omitempty"` // that it still waits, if no other call comes before it; absent: unknown
}
