// Package handoff is the service of handoffs: an agent gives another run a task, with parts of its
// grants and a reservation, and has these no more.
//
// The other run is one below the giver, which has what is handed over at once; or one of the same
// user and namespace that a grant of kind send covers, which has it when it accepts. Either gets the
// task when it accepts. Until then, and until it expires or the giver withdraws it, the offer is a row of
// the receiver's.
//
// What moves is decided when it moves, also where that is later than the offer: the giver must
// still hold it, and the receiver's manifest must cover it.
package handoff
