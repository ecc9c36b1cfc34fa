// Package link has the messages between clove and the two processes of egress/swap, and between these two.
//
//	clove ══ Order, Report ══ clove-swap, outer    connections of the agent; what it refused
//	clove ══ Order, Report ══ clove-swap, inner    connections to servers, values of secrets; each use
//	outer ══ ToInner, ToOuter ══ inner             requests, each with two pipes; signatures for ssh
//
// All are packets (internal/packet). clove trusts no message of the outer process more than if the agent had
// sent it, and neither does the inner one. A request's body and its answer go through the pipes as frames (Writer,
// Reader).
package link
