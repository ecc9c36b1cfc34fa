// Package link has the messages between control, clove-models and clove-upstream.
//
//	control  ══ ToFront, FromFront ══ clove-models     listeners, and one Begin for each call
//	control  ══ ToUpstream, FromUpstream ══ clove-upstream   one Call for each call
//	clove-models ══ Stream ══ clove-upstream           the body of a call, and its answer
//
// The first two are packets (internal/packet). Control trusts no message of clove-models
// more than if the agent itself had sent it, and clove-upstream none of its stream.
package link

import (
	"encoding/json"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/models"
)

// ToFront is a message of control to clove-models. Exactly one field is set.
//
// A process that gets Script is no server of agents but the scripted provider: with each
// Client comes a connection of clove-upstream.
type ToFront struct {
	Script *Script  `json:"script,omitempty"`
	Client bool     `json:"client,omitempty"`
	Serve  *Serve   `json:"serve,omitempty"` // with the listener
	Leave  agent.ID `json:"leave,omitempty"` // the run has ended
	Go     *Go      `json:"go,omitempty"`    // with one side of a Stream
	Refuse *Refuse  `json:"refuse,omitempty"`
	Names  *Names   `json:"names,omitempty"`
}

// FromFront is a message of clove-models. Exactly one field is set.
type FromFront struct {
	Ready  bool   `json:"ready,omitempty"` // it has no rights left
	Begin  *Begin `json:"begin,omitempty"`
	Cancel uint64 `json:"cancel,omitempty"` // the number of a call whose client has gone
	List   *List  `json:"list,omitempty"`
}

// Script is what a scripted provider answers from.
type Script struct {
	Text string `json:"text"` // empty: echo
}

// Serve has a run's agent served.
type Serve struct {
	Run agent.ID `json:"run"`
}

// Begin asks for one call of a model.
type Begin struct {
	Number uint64        `json:"number"` // clove-models' own; it never repeats
	Run    agent.ID      `json:"run"`
	Format models.Format `json:"format"`
	Model  string        `json:"model"` // as the agent names it
	Stream bool          `json:"stream,omitempty"`
	In     int64         `json:"in"`              // estimate, tokens
	Out    int64         `json:"out,omitempty"`   // the most that the request allows, tokens; 0: it says nothing
	Least  int64         `json:"least,omitempty"` // the least maximum that the provider takes for it, tokens
	N      int64         `json:"n"`               // answers
	Needs  []models.Need `json:"needs,omitempty"`
	Tiers  []string      `json:"tiers,omitempty"` // that change the price, NAME=VALUE; words
	Betas  []string      `json:"betas,omitempty"` // values of the header anthropic-beta; words
	Trace  string        `json:"trace,omitempty"` // the client's header traceparent
	// Headers are what may go on to the provider of a subscription (models.PassedHeaders).
	Headers map[string]string `json:"headers,omitempty"`
}

const (
	// MaxName bounds the name of a model as an agent writes it, and of a run, in bytes.
	MaxName = 256
	// MaxWords bounds the words in each field of a Begin.
	MaxWords = 32
	maxWord  = 96 // bytes
)

// IsWord reports whether text may pass from a request to other processes: it is short, and
// means nothing in a header.
func IsWord(text string) bool {
	return text != "" && len(text) <= maxWord && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.=") == ""
}

// IsTraceparent reports whether text has the form of a traceparent of the W3C's version 00.
func IsTraceparent(text string) bool {
	parts := strings.Split(text, "-")
	if len(text) != traceparentBytes || len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return false
	}
	return strings.Trim(text, "0123456789abcdef-") == ""
}

const traceparentBytes = 55

// Go lets a target serve a call.
type Go struct {
	Number uint64 `json:"number"`
	Model  string `json:"model"`         // the provider's name of it
	Out    int64  `json:"out,omitempty"` // to be written into a request that names no maximum, or a larger one; 0: nothing
	// Granted are the needs that the grants cover, those of the request among them.
	Granted []models.Need `json:"granted,omitempty"`
	// Again says that more follows under Number if the target fails before the first byte of its
	// answer: a Go for another target, or a Refuse, which lets the failure stand.
	Again bool `json:"again,omitempty"`
	// Renew says how the token of a subscription is renewed, in the place of an answer with status
	// 401; empty: that passes.
	Renew string `json:"renew,omitempty"`
}

// Overloaded reports whether a status of HTTP says that another target may serve the same
// request: it is about the provider's load, or its gateway's. 500 is not: a request can
// provoke it.
func Overloaded(status int) bool {
	switch status {
	case 429, 502, 503, 504, 529: // package net/http would make clove larger
		return true
	}
	return false
}

// Refuse says why a call does not begin, or a list cannot be made.
type Refuse struct {
	Number  uint64 `json:"number"`
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	After   int    `json:"after,omitempty"` // seconds until a repetition may succeed
}

// Reason is why a call is refused.
type Reason string

// The reasons.
const (
	ReasonUnknown    Reason = "unknown-model"
	ReasonNotGranted Reason = "not-granted"
	ReasonNeed       Reason = "need"   // the grant lacks provider-tools or provider-state
	ReasonBudget     Reason = "budget" // less is left than the call could use
	ReasonContext    Reason = "context-length"
	ReasonNoPrice    Reason = "no-price" // a budget in money, and no price is known
	ReasonBusy       Reason = "busy"     // too many calls, or cloved is away
	ReasonFailed     Reason = "failed"
)

// Reasons are all of them.
var Reasons = []Reason{ReasonUnknown, ReasonNotGranted, ReasonNeed, ReasonBudget, ReasonContext, ReasonNoPrice, ReasonBusy, ReasonFailed}

// List asks which models a run may call.
type List struct {
	Number uint64   `json:"number"`
	Run    agent.ID `json:"run"`
	Model  string   `json:"model,omitempty"` // whose formats are wanted; empty: of none
}

// Names answers List.
type Names struct {
	Number  uint64   `json:"number"`
	Names   []string `json:"names"`
	Formats []string `json:"formats,omitempty"` // of the model, if the run may call it
}

// Setup is the first that clove-upstream reads, as JSON from a pipe, while it still has all
// rights. It has the keys, and is nowhere else.
type Setup struct {
	Providers map[string]Provider `json:"providers"`
	Roots     []byte              `json:"roots"` // certificates of authorities, PEM
}

// MaxKey bounds a key, in bytes: common servers read no longer header.
const MaxKey = 8 << 10

// Provider is one that clove-upstream may call.
type Provider struct {
	Endpoints map[models.Format]string `json:"endpoints"` // where each format is served
	Key       string                   `json:"key,omitempty"`
	// Subscription is the client whose token the key is (models.SubscriptionOf); empty: it is one
	// of the family's own. Account is the id of its account.
	Subscription string        `json:"subscription,omitempty"`
	Account      string        `json:"account,omitempty"`
	First        time.Duration `json:"first"`   // the longest wait for the first byte of an answer's body
	Pause        time.Duration `json:"between"` // the longest wait for more of it
	Total        time.Duration `json:"total"`
	Roots        []byte        `json:"roots,omitempty"` // its own authorities, PEM; empty: those of the setup
}

// ToUpstream is a message of control to clove-upstream. Exactly one field is set.
type ToUpstream struct {
	Call   *Call   `json:"call,omitempty"` // with the other side of the Stream
	Cancel uint64  `json:"cancel,omitempty"`
	Socket *Socket `json:"socket,omitempty"` // with a connection, unless Error says why not
	More   *More   `json:"more,omitempty"`
}

// Call is one call to make. With a second descriptor, what is said is copied to it: the body as
// SendBody writes it, then what of the answer was passed on.
type Call struct {
	Number   uint64        `json:"number"` // control's own
	Owner    uint32        `json:"owner"`  // user id; bodies are bounded for each
	Provider string        `json:"provider"`
	Format   models.Format `json:"format"`
	In       int64         `json:"in"`       // estimate of the input, which counts where the provider reports nothing, tokens
	MostOut  int64         `json:"most_out"` // tokens of output that are reserved, after which an answer is cut off; 0: nothing bounds it
	Betas    []string      `json:"betas,omitempty"`
	// Headers are the agent's, of which a subscription's provider gets those of its client's row.
	Headers map[string]string `json:"headers,omitempty"`
	// Ticket is what settles the call when control is gone; clove-upstream does not read it.
	Ticket json.RawMessage `json:"ticket,omitempty"`
}

// Socket answers Dial.
type Socket struct {
	Number uint64 `json:"number"`
	Error  string `json:"error,omitempty"`
}

// More says how much output is reserved for a call by now.
type More struct {
	Call    uint64 `json:"call"`     // its number
	MostOut int64  `json:"most_out"` // as Call's; 0: no more than before
}

// FromUpstream is a message of clove-upstream. Exactly one field is set.
type FromUpstream struct {
	Ready bool  `json:"ready,omitempty"` // it has no rights left
	Dial  *Dial `json:"dial,omitempty"`
	Done  *Done `json:"done,omitempty"`
	// More is the number of a call whose answer is longer than MostOut. It waits for More.
	More uint64 `json:"more,omitempty"`
}

// Dial asks for a connection to a provider.
type Dial struct {
	Number   uint64 `json:"number"`
	Provider string `json:"provider"`
}

// Limits are what a provider says that it serves in a minute. 0: it says nothing.
type Limits struct {
	Requests int64 `json:"requests,omitempty"`
	Tokens   int64 `json:"tokens,omitempty"`
}

// Done says how a call ended.
type Done struct {
	Number   uint64       `json:"number"`
	Status   int          `json:"status"`          // of HTTP; 0: there was no answer
	Usage    models.Usage `json:"usage"`           // to be settled: as reported, else estimated
	Tiers    []string     `json:"tiers,omitempty"` // that the provider named, NAME=VALUE
	Model    string       `json:"model,omitempty"` // that the provider named
	Reported bool         `json:"reported"`        // the provider said what was used
	// Estimated says that a part of Usage is no provider's figure.
	Estimated bool `json:"estimated,omitempty"`
	Complete  bool `json:"complete"` // the answer ended as it should
	Sent      bool `json:"sent"`     // the provider has the request, or may have it
	// Unreached says that no connection to the provider could be made.
	Unreached bool          `json:"unreached,omitempty"`
	First     time.Duration `json:"first"` // until the first byte of the answer
	Total     time.Duration `json:"total"`
	Error     string        `json:"error,omitempty"`
	Limits    Limits        `json:"limits,omitzero"` // that the provider named
	After     int           `json:"after,omitempty"` // seconds after which the provider wants to be asked again
	// Fault and Detail are why there was no answer. They are for administrators: no agent
	// reads them.
	Fault  Fault  `json:"fault,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Ticket is the call's, in a journal only.
	Ticket json.RawMessage `json:"ticket,omitempty"`
}

// JournalBytes bounds what clove-upstream writes into its journal: a line of JSON, a Done, for
// each call that has ended when control was gone.
const JournalBytes = 4 << 20

// Fault is how far a call came that has no answer.
type Fault string

// The faults.
const (
	FaultDial Fault = "dial" // there is no connection to the provider
	FaultTLS  Fault = "tls"  // the provider does not prove its name
	FaultTime Fault = "time"
	FaultLost Fault = "lost" // the connection ended
)
