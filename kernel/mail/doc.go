// Package mail is the service by which agents send each other messages.
//
// # Theory of operation
//
// Each run has a mailbox (package kernel/lease), made by the first message to it. mail.send finds the
// receiver among the names and the runs of the sender's owner and namespace, or above the sender (parent), and
// puts the message into its box in one transaction with the grant's use, the sender's budget (dimension messages)
// and the audit entry: it is durable when the call is answered. clove sets who has sent it, when, and by
// which call. mail.receive reads and takes nothing out, so a receiver that dies misses nothing; mail.ack
// takes messages out, all that it names or none. What has expired, or is rejected, becomes a dead letter.
//
// Of the runs that hold a name one gets the message: the one whose turn it is and whose box is not full. So
// no two handle it, and no claim on it has to end. What a run has not acknowledged of that when it ends goes to
// the next holder. A reserved name that no run holds has a box of its own; a run that registers gets what is
// in it.
//
// A full box refuses its senders. Boxes of runs go when the run is removed.
package mail
