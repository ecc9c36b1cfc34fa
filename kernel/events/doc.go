// Package events has the events that agents append, and follows causes over agents.
//
// An event of an agent's is a row of kernel.db and a record of the audit log, in one transaction; the newest of
// each run are kept until the run is removed. It may name what it follows from: an event, a call or a message
// that the agent may see. What it may not see is answered like what does not exist.
//
// A chain of causes is read from the audit log (audit.Chain), in which clove notes the cause of each call that
// has one: a reply follows from the message that asks, an acknowledgement from the message, a call that it
// carries from the acknowledgement, a run from the call that started it, and all else that an agent does from the
// start of its run. So there is no index: what is asked for is near the end of the log as a rule, and how far back
// is searched has a bound.
package events
