// Package format reads the requests that agents send to models, and writes what is sent in
// their place: the body for the provider, errors, and lists of models.
//
//	agent's body ──▶ Parse ─▶ Request: model, estimate, maximum, needs ─▶ control decides
//	                             │                                           │
//	provider    ◀── Body ◀───────┴── model's name there, maximum ◀───────────┤
//	agent       ◀── Failure, FailureEvent ◀── Refusal ◀──────────────────────┘
//	agent       ◀── StreamFilter ◀── the provider's stream
//
// A body is read once, into a list of its values, and is refused if two readers could
// read it differently: names that occur twice, also in another case (Go's decoders take
// "Model" for "model"), invalid UTF-8, text after the end. So the provider reads what was
// checked here.
//
// Each format has three closed tables: its fields, the names inside of their values, and
// the values of "type". A row says whether it passes, needs a right, or is refused; Fields
// returns all rows. The tables are those of the providers' public types: OpenAI's Python
// package 3.3.1 and Anthropic's of August 2026, and the extensions of servers with
// OpenAI's format that reach the network, run code or change the cost.
//
// A field without a row passes unchanged, unless a word of its name or of a name inside it
// is one of a list (url, id, type, file, tool, model, search, max …), or a string in it
// contains "://". A "type" without a row is refused.
//
// Names are the agent's own in some places: JSON schemas, arguments of its tools, labels.
// There a URL is text, except for "$ref" in a schema, which some servers follow.
//
// The package runs where bytes of agents are parsed, in a process without rights. What it
// reports is a claim: control reserves by it, and settles by what models/usage has read
// from the provider. It decides nothing, and it sends nothing.
package format
