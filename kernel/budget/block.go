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

// Reserved returns what open reservations hold.
func (a *Account) Reserved() Amounts {
	reserved := Amounts{}
	for d, line := range a.Lines {
		reserved[d] = line.Reserved
	}
	return reserved
}

// Covers divides what was used into what r has reserved and what is beyond that.
func (r Reservation) Covers(used Amounts) (covered, over Amounts) {
	used = used.whole()
	covered, over = Amounts{}, Amounts{}
	for d, amount := range used {
		over[d] = max(0, amount-r.Amounts[d])
	}
	over = over.whole() // tokens beyond it are beyond it in the sum too
	for d, amount := range used {
		covered[d] = amount - over[d]
	}
	return covered, over
}
