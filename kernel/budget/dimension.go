package budget

import (
	"fmt"
	"strings"

	"clove.run/clove/agent"
)

// Dimension is what a budget limits, one of clove's or one that a user named.
type Dimension string

// The dimensions of clove's. Their names cannot be used for anything else.
const (
	Tokens       Dimension = "tokens" // TokensIn plus TokensOut; an agent may charge those of models that are not clove's
	TokensIn     Dimension = "tokens_in"
	TokensOut    Dimension = "tokens_out"
	TokensCached Dimension = "tokens_cached"
	CostMicros   Dimension = "cost_micros" // millionths of a US dollar
	ModelCalls   Dimension = "model_calls"
	ToolCalls    Dimension = "tool_calls"
	CPU          Dimension = "cpu_ms"
	Wall         Dimension = "wall_ms"
	WriteBytes   Dimension = "write_bytes"
	NetBytes     Dimension = "net_bytes"
	Messages     Dimension = "messages"
	Children     Dimension = "children"
)

// source is where the amounts of a dimension come from.
type source int

const (
	charged source = iota // by the agent, or by a service
	counted               // by clove's services only
	metered               // from the Linux kernel's counters
)

// own are the dimensions that clove knows.
var own = map[Dimension]source{
	Tokens:   charged,
	TokensIn: counted, TokensOut: counted, TokensCached: counted, CostMicros: counted, ModelCalls: counted, ToolCalls: counted,
	Messages: counted, Children: counted,
	CPU: metered, Wall: metered, WriteBytes: metered, NetBytes: metered,
}

// cost is how CostMicros is written on the command line. No dimension has this name.
const cost = "cost"

// maxDimension bounds the bytes of a name.
const maxDimension = 32

// Own reports whether users named d: clove knows nothing of its meaning.
func (d Dimension) Own() bool { _, known := own[d]; return !known }

// Counted reports whether clove alone counts d. An agent may neither reserve, settle nor
// charge such a dimension.
func (d Dimension) Counted() bool { return own[d] != charged }

// Metered reports whether d is read from the Linux kernel's counters while the agent
// runs. Counters show past use: it is metered, never reserved or charged.
func (d Dimension) Metered() bool { return own[d] == metered }

// Validate rejects a name that is not a letter and up to 31 letters, digits or "_", all
// lower case.
func (d Dimension) Validate() error {
	inside := strings.Trim(string(d), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	if d != "" && len(d) <= maxDimension && inside && d[0] >= 'a' && d[0] <= 'z' && d != cost {
		return nil
	}
	return invalid("use 1 to 32 lower-case letters, digits or '_', and begin with a letter", "%.64q is not a dimension of a budget", string(d))
}

// ParseDimension reads a name as users write it: cost is CostMicros.
func ParseDimension(text string) (Dimension, error) {
	if text == cost {
		return CostMicros, nil
	}
	return Dimension(text), Dimension(text).Validate()
}

func invalid(hint, format string, arguments ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "budget", Message: fmt.Sprintf(format, arguments...), Hint: hint}
}
