package budget

// Block returns an account that grants what a reservation holds, and nothing else. A
// service that draws a block durably reserves and settles inside of it in memory, with a
// Chain of it alone, and in the end settles the reservation with the block's Used.
func (r Reservation) Block() *Account {
	block := &Account{AtEnd: Refuse}
	for d, amount := range r.Amounts {
		block.open(d, Line{Granted: amount})
	}
	return block
}

// Used returns what was used in the periods that lines are in.
func (a *Account) Used() Amounts {
	used := Amounts{}
	for d, line := range a.Lines {
		used[d] = line.Used
	}
	return used
}
