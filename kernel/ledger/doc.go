// Package ledger lets services of clove's spend for an agent, such as the service of models: each
// call is reserved first, durably with its audit entry, and settled afterwards.
//
//	Reserve ── the call ── Renew … ── Settle
//
// A reservation takes a call through the stages of the engine until it is done: a grant covers it
// and is used once, and its upper bound is set aside. So that a call does not wait for the disk, a
// settlement may make a spare, the reservation of the next call (spares.go); its entry comes with
// its settlement. After a crash a reservation counts as used in full, which the accounts show as
// assumed.
//
// It gets grants and accounts as interfaces.
package ledger
