package agent

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kernel is what a run has of what agents share. The texts are those of the command line;
// packages kernel/grant and kernel/budget say what they mean.
type Kernel struct {
	Socket   bool     `json:"socket,omitempty"`     // the agent has a socket of its own, also without a grant
	Grants   []string `json:"grants,omitempty"`     // KIND:PATTERN[:RIGHTS], given at the first start
	Budgets  []string `json:"budgets,omitempty"`    // DIMENSION=AMOUNT..., set at the first start
	AtEnd    string   `json:"at_end,omitempty"`     // what happens when a budget is spent, one of AtEnds; empty: end
	OnDenial string   `json:"on_denial,omitempty"`  // what a refusal does to the run: deny, pause, end or end-after:N; empty: deny
	OnWarn   string   `json:"on_warn,omitempty"`    // command or URL for a budget that reached its warning; empty: none
	OnEnd    string   `json:"on_end,omitempty"`     // command or URL for a budget of which nothing is left; empty: none
	OnAsk    string   `json:"on_ask,omitempty"`     // command or URL that may answer questions; empty: none
	OnAskKey string   `json:"on_ask_key,omitempty"` // absolute path of the owner's key for the proofs of OnAsk's answers
	Asks     []string `json:"asks,omitempty"`       // of what no rule decides, what people are asked about: some of Asks
	// AskHold is how long a connection, a request or a call of a tool is held for people's answer; 0: AskHold.
	AskHold   time.Duration `json:"ask_hold_ns,omitempty"`
	Namespace string        `json:"namespace,omitempty"` // below the owner; empty: the owner's own
	// Secrets are those that the run may use, each with how it gets the placeholder: NAME:env=VARIABLE, NAME:file=/PATH, or
	// NAME: and a program (secrets.ParseMount).
	Secrets []string `json:"secrets,omitempty"`
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
	AskApply  = "apply"  // writing the agent's changes back to its workspace on the host
	AskSecret = "secret" // requests that are to carry a secret, which no grant covers
	AskTool   = "tool"   // calls of tools that may change something
)

// Asks are the values of Kernel.Asks. KIND=N needs the yes of N users.
var Asks = []string{AskNet, AskSpawn, AskBudget, AskApply, AskSecret, AskTool}

// AskHold is how long a connection, a request or a call of a tool is held for people's answer, unless Kernel.AskHold says something
// else, which is of AskHoldLeast to AskHoldMost.
const (
	AskHold      = 10 * time.Minute
	AskHoldLeast = time.Second
	AskHoldMost  = time.Hour
)

// PeopleMost bounds the users whose yes a question needs.
const PeopleMost = 16

// ParseAsk returns what an element of Kernel.Asks is about, and how many users must say yes.
func ParseAsk(text string) (kind string, people int, sound bool) {
	kind, number, several := strings.Cut(text, "=")
	people = 1
	if several {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > PeopleMost || strconv.Itoa(n) != number {
			return kind, 0, false
		}
		people = n
	}
	return kind, people, slices.Contains(Asks, kind)
}

// People is how many users must say yes to a question of a kind; 0: nothing of the kind is asked.
func (k Kernel) People(kind string) (people int) {
	for _, text := range k.Asks {
		if about, n, sound := ParseAsk(text); sound && about == kind {
			people = max(people, n)
		}
	}
	return people
}

// FirstGrants are the grants that a run begins with: Grants, and secret:NAME for each of Secrets, unless people are asked about
// those.
func (k Kernel) FirstGrants() []string {
	if k.People(AskSecret) > 0 {
		return k.Grants
	}
	all := slices.Clone(k.Grants)
	for _, text := range k.Secrets {
		name, _, _ := strings.Cut(text, ":")
		if scope := "secret:" + name; !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// OrphansKeep as Kernel.Orphans lets children go on after their parent's end.
const OrphansKeep = "keep"

// SpawnDepthMost bounds Kernel.SpawnDepth.
const SpawnDepthMost = 8

// HasChildren reports whether the agent may start others: it has a grant for that, or may get one,
// because a budget says how many, or asks people about each.
func (k Kernel) HasChildren() bool {
	return k.People(AskSpawn) > 0 || slices.ContainsFunc(k.Grants, func(text string) bool { return strings.HasPrefix(text, "spawn:") }) ||
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
	return k.Socket || k.HasStreams() || k.People(AskSpawn) > 0 || k.People(AskApply) > 0 || len(k.Grants) > 0 || slices.ContainsFunc(k.Budgets, func(text string) bool {
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

// ToolPort is where an agent that may call tools finds them, on its own loopback.
const ToolPort = 8412

// ToolURL is where an agent that may call tools finds the MCP server.
var ToolURL = "http://127.0.0.1:" + strconv.Itoa(ToolPort) + "/mcp"

// HasTools reports whether the agent may call tools, and so has the MCP server.
func (k Kernel) HasTools() bool {
	return slices.ContainsFunc(k.Grants, func(text string) bool { return strings.HasPrefix(text, "tool:") })
}

// Shares reports whether the run has a part in what agents share: a socket or a budget.
func (k Kernel) Shares() bool {
	return k.HasSocket() || len(k.Budgets) > 0 || len(k.Asks) > 0 || len(k.Secrets) > 0
}
