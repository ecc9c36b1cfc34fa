// Package control is root's side of models: it decides each call of an agent, reserves and
// settles what it costs, and keeps the processes that do the rest. It parses nothing that
// an agent or a provider wrote.
//
// A call passes through it like this:
//
//	clove-models: Begin ─▶ model and target ─▶ grant, budget reserved ─▶ clove-upstream: Call
//	                                                                 └─▶ clove-models: Go
//	clove-upstream: Done ─▶ budget settled, usage counted
//	                    └─▶ failed before the first byte: the next target, and Go again
//
// Where a run asks for a log of what its calls say, clove-upstream copies it, and control puts it
// into the log as bytes.
//
// Each process is replaced when it ends. What a call had reserved when clove-upstream ended
// counts as used. Where there are journals, the processes outlast control: the calls in flight
// come to their end, and the next control settles them (Find).
package control
