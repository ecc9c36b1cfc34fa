package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
)

// Check returns everything in the file that should not be, in words; nothing
// when it is sound. The error says that the file could not be read at all.
func (k *Kernel) Check() (problems []string, err error) {
	err = k.alone(func(tx *bbolt.Tx) error {
		a := &kernelAudit{tx: tx, problems: k.format.problems(tx), held: map[budget.Key]budget.Amounts{}}
		for _, name := range k.format.buckets {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("%w: the bucket %s is missing", errDamaged, name)
			}
		}
		for _, d := range k.tables {
			d.check(a)
		}
		// Conditions that concern the rows of more than one table.
		a.everyReservation()
		a.everyAccount()
		a.everyParent()
		a.everyDay()
		a.everyAnswer()
		a.everyEntry()
		problems = append(a.problems, pageProblems(tx)...)
		return nil
	})
	return problems, err
}

// kernelAudit collects what Check finds in one transaction.
type kernelAudit struct {
	tx       *bbolt.Tx
	held     map[budget.Key]budget.Amounts // what the reservations say, to hold the accounts against
	problems []string
}

func (a *kernelAudit) problem(format string, arguments ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, arguments...))
}

// rows ranges over the rows of a bucket.
func (a *kernelAudit) rows(bucket []byte) func(func([]byte, []byte) bool) {
	return each(a.tx.Bucket(bucket).Cursor())
}

// everyReservation sums what the reservations hold.
func (a *kernelAudit) everyReservation() {
	for _, r := range Reservations.readable(a) {
		for account, amounts := range r.Held {
			if a.held[account] == nil {
				a.held[account] = budget.Amounts{}
			}
			for d, amount := range amounts {
				a.held[account][d] += amount
			}
		}
	}
}

// everyAccount applies the rules to each line, and holds what is reserved against the
// reservations, both ways: too much could never be spent, too little could be spent twice.
func (a *kernelAudit) everyAccount() {
	for _, account := range Accounts.readable(a) {
		for _, d := range slices.Sorted(maps.Keys(account.Lines)) {
			a.everyLine(account, d)
		}
		a.unheld(account.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(a.held)) {
		a.unheld(key)
	}
}

func (a *kernelAudit) everyLine(account *budget.Account, d budget.Dimension) {
	line := account.Lines[d]
	if line == nil {
		a.problem("account %q: %s is nothing", account.Key, d)
		return
	}
	if broken := line.Broken(d); broken != "" {
		a.problem("account %q: %s: %s", account.Key, d, broken)
	}
	if held := a.held[account.Key][d]; line.Reserved != held {
		a.problem("account %q: %d of %s are reserved, the reservations say %d", account.Key, line.Reserved, d, held)
	}
	delete(a.held[account.Key], d)
}

// unheld reports what reservations hold in lines that are not there.
func (a *kernelAudit) unheld(key budget.Key) {
	for _, d := range slices.Sorted(maps.Keys(a.held[key])) {
		a.problem("account %q: there is no %s, and reservations hold %d of it", key, d, a.held[key][d])
	}
	delete(a.held, key)
}

// everyDay holds the number of the daily sums against the bounds.
func (a *kernelAudit) everyDay() {
	days, rows := map[string]bool{}, map[string]int{}
	for _, s := range DailySums.readable(a) {
		days[s.Day] = true
		if of := dayPrefix(s.Day, s.Owner); s.Dimension != OtherDimensions {
			if rows[of]++; rows[of] == maxDayDimensions+1 {
				a.problem("daily sums of %q: there are more than %d", of, maxDayDimensions)
			}
		}
	}
	if len(days) > maxDays {
		a.problem("daily sums: they are of %d days, more than %d", len(days), maxDays)
	}
}

// everyAnswer holds the answers against their order, both ways.
func (a *kernelAudit) everyAnswer() {
	ordered := map[string]bool{}
	counts := map[string]int{}
	for key, value := range a.rows(bucketAnswerOrder) {
		run, place, _ := bytes.Cut(key, []byte("/"))
		number, ok := numbered(place)
		if !ok || !holdsAnswers(agent.ID(run)) {
			a.problem("answer order %q: it is no number of a run", key)
			continue
		}
		answer := RunKey(agent.ID(run), string(value))
		if a.tx.Bucket(bucketAnswers).Get([]byte(answer)) == nil || ordered[answer] {
			a.problem("answer %q: the order has it, and it is not there, or twice", answer)
		}
		ordered[answer] = true
		caller := fmt.Sprint(string(run), " ", number >= usersAnswers)
		if counts[caller]++; counts[caller] == maxAnswers+1 {
			a.problem("run %q: has more than %d answers", run, maxAnswers)
		}
	}
	for key := range a.rows(bucketAnswers) {
		if !ordered[string(key)] {
			a.problem("answer %q: the order lacks it", key)
		}
	}
}

// everyParent checks that each grant's parents are there and do not go in a circle: one
// that was not revoked with its parent would be a right that was not given.
func (a *kernelAudit) everyParent() {
	all := map[string]*grant.Grant{}
	for id, g := range Grants.readable(a) {
		all[id] = g
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		g := all[id]
		if g.Parent == "" {
			continue
		}
		parent, there := all[g.Parent]
		if !there {
			a.problem("grant %q: its parent %q is not there", id, g.Parent)
		} else if g.Depth != parent.Depth+1 {
			a.problem("grant %q: it is %d deep, its parent %d", id, g.Depth, parent.Depth)
		}
	}
}

// everyEntry checks the numbers of the audit queue.
func (a *kernelAudit) everyEntry() {
	last := a.tx.Bucket(bucketAudit).Sequence()
	for key := range a.rows(bucketAudit) {
		if number, ok := numbered(key); !ok || number > last {
			a.problem("audit entry %x: it is none of %d", key, last)
		}
	}
}
