// Package budget decides what may be spent: which amounts fit into which accounts, what a
// spending changes in them, and when a limit warns or ends.
//
// An Account has one Line for each Dimension that is limited or counted in it. Accounts
// form a tree, from a user down to a run:
//
//	1000 ── 1000/ns:acme ── 1000/name:writer ── 1000/run:6f1d…      a Chain, the run's first
//
// A run spends from each account of its Chain that has the dimension. So the runs below an
// account have never spent more in sum than the account says. The Chain of a run that an agent
// started also has the accounts of the runs above it, each of which is to it an account above.
//
// Amounts are reserved first and settled afterwards:
//
//	Reserve   takes an upper bound, from all accounts or from none
//	Settle    gives the Reservation back and adds what it did cost, also where that is more
//	Release   gives the Reservation back
//	Recover   settles after a crash: in full (assumed) if the service may have begun
//	Charge    adds what has happened already, also where it exceeds the limit
//	Claim     is Charge or Settle for an agent's word: above the run it counts at most what is left
//	Meter     charges the growth of a counter of the Linux kernel
//
// Each returns Effects: what was added, the lines that reached their warning, and those
// that exceeded their limit, each reported once. Account.AtEnd says what follows from that;
// package kernel does it. The same follows where a reservation is refused that would not fit
// without the others either: Stop notes that as a Shortage of the run, and of no other run
// that spends from the account. Of what agents charge, an account above stops only a run that its
// limit is too small for alone.
//
// A line may have a period. It begins anew with each hour, day or month (UTC). The period
// that began last is in the line, so a clock that is set back changes nothing. A
// reservation stays over the end of a period, and counts in the period in which it is
// settled.
//
// The package is pure: accounts and times are arguments, and rows are the store's. It does
// not check who the caller is, except for the rules Dimension.Counted and Line.MayChange,
// which its users must ask.
package budget
