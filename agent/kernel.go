package agent

import (
	"slices"
	"strings"
	"time"
)

// Kernel is what a run has of what agents share. The texts are those of the command line;
// packages kernel/grant and kernel/budget say what they mean.
type Kernel struct {
	Socket   bool     `json:"socket,omitempty"`    // the agent has a socket of its own, also without a grant
	Grants   []string `json:"grants,omitempty"`    // KIND:PATTERN[:RIGHTS], given at the first start
	Budgets  []string `json:"budgets,omitempty"`   // DIMENSION=AMOUNT..., set at the first start
	AtEnd    string   `json:"at_end,omitempty"`    // what happens when a budget is spent, one of AtEnds; empty: end
	OnDenial string   `json:"on_denial,omitempty"` // what a refusal does to the run: deny, pause, end or end-after:N; empty: deny
	OnWarn   string   `json:"on_warn,omitempty"`   // command or URL for a budget that reached its warning; empty: none
	OnEnd    string   `json:"on_end,omitempty"`    // command or URL for a budget of which nothing is left; empty: none
	Asks     []string `json:"asks,omitempty"`      // of what no rule decides, what people are asked about: some of Asks
	// AskHold is how long a connection is held for people's answer; 0: AskHold.
	AskHold   time.Duration `json:"ask_hold_ns,omitempty"`
	Namespace string        `json:"namespace,omitempty"` // below the owner; empty: the owner's own
	// ModelSetup is a client of models, one of ModelSetups, whose file is written into the
	// agent's home before it starts; empty: none.
	ModelSetup string `json:"model_setup,omitempty"`
	ModelLog   bool   `json:"model_log,omitempty"` // keep what its calls of models say and get
	// StdoutTo and StdinFrom join the agent's standard streams to mail, as ParseMailStream reads; empty: they are not.
	StdoutTo  string `json:"stdout_to,omitempty"`
	StdinFrom string `json:"stdin_from,omitempty"`
	// SpawnDepth is how many levels of runs may be below this one; 0: its children start none.
	SpawnDepth int `json:"spawn_depth,omitempty"`
	// Orphans is OrphansKeep, or empty: the run's children are ended with it.
	Orphans string `json:"orphans,omitempty"`
	// Idle ends the run when its agent has only waited for mail and jobs for so long; 0: nothing does.
	Idle time.Duration `json:"idle_ns,omitempty"`
}

// The values of Kernel.Asks.
const (
	AskNet    = "net"    // connections that no rule covers
	AskSpawn  = "spawn"  // children that no grant covers
	AskBudget = "budget" // more of a budget that has paused the run
)

// Asks are the values of Kernel.Asks.
var Asks = []string{AskNet, AskSpawn, AskBudget}

// AskHold is how long a connection is held for people's answer, unless Kernel.AskHold says something else, which is of
// AskHoldLeast to AskHoldMost.
const (
	AskHold      = 10 * time.Minute
	AskHoldLeast = time.Second
	AskHoldMost  = time.Hour
)

// OrphansKeep as Kernel.Orphans lets children go on after their parent's end.
const OrphansKeep = "keep"

// SpawnDepthMost bounds Kernel.SpawnDepth.
const SpawnDepthMost = 8

// HasChildren reports whether the agent may start others: it has a grant for that, or may get one,
// because a budget says how many, or asks people about each.
func (k Kernel) HasChildren() bool {
	return slices.Contains(k.Asks, AskSpawn) || slices.ContainsFunc(k.Grants, func(text string) bool { return strings.HasPrefix(text, "spawn:") }) ||
		slices.ContainsFunc(k.Budgets, func(text string) bool { return strings.HasPrefix(text, "children=") })
}

// SocketPath is where an agent finds its own socket, inside.
const SocketPath = "/run/clove/agent.sock"

// AtEnds are the values of Kernel.AtEnd.
var AtEnds = []string{"end", "pause", "refuse"}

// metered are the dimensions of a budget that the Linux kernel counts. A run with no others
// needs no socket: its agent has nothing to ask.
var metered = []string{"cpu_ms", "wall_ms", "write_bytes", "net_bytes"}

// HasSocket reports whether the agent has a socket of its own.
func (k Kernel) HasSocket() bool {
	return k.Socket || k.HasStreams() || slices.ContainsFunc(k.Asks, func(ask string) bool { return ask != AskNet }) || len(k.Grants) > 0 || slices.ContainsFunc(k.Budgets, func(text string) bool {
		dimension, _, _ := strings.Cut(text, "=")
		return !slices.Contains(metered, dimension)
	})
}

// ModelPort is where an agent that may call models finds them, on its own loopback.
const ModelPort = 8411

// HasModels reports whether the agent has the HTTP interface of models.
func (k Kernel) HasModels() bool {
	return slices.ContainsFunc(k.Grants, func(text string) bool { return strings.HasPrefix(text, "model:") })
}

// Shares reports whether the run has a part in what agents share: a socket or a budget.
func (k Kernel) Shares() bool { return k.HasSocket() || len(k.Budgets) > 0 || len(k.Asks) > 0 }
