package service

import (
	"cmp"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
)

// Outcome is what a method decided, beside its result. The zero Outcome changes nothing but what
// the method wrote.
type Outcome struct {
	About  string // what the call names, for the audit log
	Reason string // why, as the caller says, for the audit log
	Rule   string // the rule or the grant that decided
	Object string // ids of what the call made or took, for the audit log
	// Causation is the id of the call from which this one follows, for the audit log; empty: none is known.
	Causation string
	// Verdict is set by a method that only reads, and decides: it is recorded.
	Verdict string
	// Owner is the user to which the entry belongs; nil: the owner of the run, or else the caller.
	Owner *uint32
	// Entry is recorded of a method that acts, in place of the call's own, also with an error.
	Entry *audit.Entry
	// Recorded says that the refusal of the call has its entry already.
	Recorded bool
	// Refusal refuses the call although what it has written stays.
	Refusal error

	Events []Event
	// Ends says that the end of the call's run follows from this call.
	Ends bool
	// Notices are for agents of runs, by run.
	Notices map[agent.ID][]Notice
	// Changed are runs whose standing is to be reported anew, and Below is asked of all others.
	Changed []agent.ID
	Below   func(agent.Run) bool
	// Topics are those whose waiting calls look again.
	Topics []Topic
	// Used is what the call cost, of what was reserved for it; nil: all of that.
	Used budget.Amounts
	// Durable are called in order when the transaction is on the disk. They must not block.
	Durable []func()
}

// Event is one event of the call's run.
type Event struct {
	Kind   agent.RunEventKind
	Detail string
	// Run is that of the event; empty: the call's.
	Run agent.ID
	// Call is that from which the event follows, if another carried it.
	Call string
	// Bounded events are left out where an agent makes many of them, by calls or, of another Run, by what its supervisor calls. Those with another Bound do not count.
	Bounded bool
	Bound   agent.RunEventKind
}

// Notice is a notification for an agent. Notices of one kind and one key that no client has read
// yet become one.
type Notice struct {
	Kind   string // the notification's method
	Key    string // what it is about; empty: the kind alone
	Params any
}

// Notify adds a notice for a run's agent.
func (o *Outcome) Notify(run agent.ID, n Notice) {
	if o.Notices == nil {
		o.Notices = map[agent.ID][]Notice{}
	}
	o.Notices[run] = append(o.Notices[run], n)
}

// Happened adds an event that is bounded where an agent caused it.
func (o *Outcome) Happened(kind agent.RunEventKind, detail string) {
	o.Events = append(o.Events, Event{Kind: kind, Detail: detail, Bounded: true})
}

// Add joins the outcome of another step: fields that are set here stay.
func (o *Outcome) Add(other Outcome) {
	o.About, o.Reason = cmp.Or(o.About, other.About), cmp.Or(o.Reason, other.Reason)
	o.Rule, o.Verdict = cmp.Or(o.Rule, other.Rule), cmp.Or(o.Verdict, other.Verdict)
	o.Object, o.Causation = cmp.Or(o.Object, other.Object), cmp.Or(o.Causation, other.Causation)
	o.Events, o.Ends = append(o.Events, other.Events...), o.Ends || other.Ends
	for run, all := range other.Notices {
		for _, n := range all {
			o.Notify(run, n)
		}
	}
	o.Changed = append(o.Changed, other.Changed...)
	o.Below = either(o.Below, other.Below)
	o.Topics = append(o.Topics, other.Topics...)
	o.Durable = append(o.Durable, other.Durable...)
	if o.Refusal == nil {
		o.Refusal = other.Refusal
	}
	if o.Owner == nil {
		o.Owner = other.Owner
	}
}

func either(a, b func(agent.Run) bool) func(agent.Run) bool {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(run agent.Run) bool { return a(run) || b(run) }
}

// notices are those for a run, as they are sent.
func (o Outcome) notices(run agent.ID) (all []api.Notice) {
	for _, n := range o.Notices[run] {
		all = append(all, n.sent())
	}
	return all
}
