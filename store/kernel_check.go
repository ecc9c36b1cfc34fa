package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
)

// Check returns everything in the file that should not be, in words; nothing
// when it is sound. The error says that the file could not be read at all.
func (k *Kernel) Check() (problems []string, err error) {
	err = k.alone(func(tx *bbolt.Tx) error {
		a := &kernelAudit{tx: tx, problems: k.format.problems(tx), held: map[budget.Key]budget.Amounts{}, grants: map[string]grant.Grant{}}
		for _, name := range kernelFormat.buckets {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("%w: the bucket %s is missing", errDamaged, name)
			}
		}
		a.everyReservation()
		a.everyAccount()
		a.everyDay()
		a.everyAnswer()
		a.everyGrant()
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
	grants   map[string]grant.Grant
	problems []string
}

func (a *kernelAudit) problem(format string, arguments ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, arguments...))
}

// rows ranges over the rows of a bucket.
func (a *kernelAudit) rows(bucket []byte) func(func([]byte, []byte) bool) {
	return each(a.tx.Bucket(bucket).Cursor())
}

// everyReservation decodes each reservation, and sums what it holds.
func (a *kernelAudit) everyReservation() {
	for key, value := range a.rows(bucketReservations) {
		var r budget.Reservation
		if err := decodeRow(bucketReservations, row{key, value}, &r); err != nil {
			a.problem("reservation %q: %v", key, err)
			continue
		}
		if string(key) != reservationKey(r.Run, r.ID) || !r.Run.Valid() {
			a.problem("reservation %q: says that it is %q of %q", key, r.ID, r.Run)
		}
		for account, amounts := range r.Held {
			for d, amount := range amounts {
				if amount != r.Amounts[d] {
					a.problem("reservation %q: holds %d of %s in %s, and is of %d", key, amount, d, account, r.Amounts[d])
				}
				if a.held[account] == nil {
					a.held[account] = budget.Amounts{}
				}
				a.held[account][d] += amount
			}
		}
	}
}

// everyAccount applies the rules to each line, and holds what is reserved against the
// reservations, both ways: too much could never be spent, too little could be spent twice.
func (a *kernelAudit) everyAccount() {
	for key, value := range a.rows(bucketAccounts) {
		var account budget.Account
		if err := decodeRow(bucketAccounts, row{key, value}, &account); err != nil {
			a.problem("account %q: %v", key, err)
			continue
		}
		account.Key = budget.Key(key)
		if _, ok := account.Key.Owner(); !ok {
			a.problem("account %q: it is nobody's", key)
		}
		if _, ofRun := account.Key.Run(); account.Short != nil && !ofRun {
			a.problem("account %q: it is no run's, and is stopped by a reservation", key)
		}
		for _, d := range slices.Sorted(maps.Keys(account.Lines)) {
			a.everyLine(&account, d)
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

// everyDay decodes each daily sum, and holds their number against the bounds.
func (a *kernelAudit) everyDay() {
	days, rows := map[string]bool{}, map[string]int{}
	for key, value := range a.rows(bucketDays) {
		s, err := daySumOf(row{key, value})
		if err != nil {
			a.problem("daily sum %q: %v", key, err)
			continue
		}
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
		if !ok || !agent.ID(run).Valid() {
			a.problem("answer order %q: it is no number of a run", key)
			continue
		}
		answer := string(answerKey(agent.ID(run), string(value)))
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

// everyGrant decodes each grant, and holds it against its parent and the two indexes.
func (a *kernelAudit) everyGrant() {
	holders, derived := map[string]bool{}, map[string]bool{}
	for key, value := range a.rows(bucketGrants) {
		var g grant.Grant
		if err := decodeRow(bucketGrants, row{key, value}, &g); err != nil {
			a.problem("grant %q: %v", key, err)
			continue
		}
		if g.ID != string(key) {
			a.problem("grant %q: says that it is %q", key, g.ID)
		}
		if _, err := g.Scope(); err != nil {
			a.problem("grant %q: %v", key, err)
		}
		a.grants[string(key)] = g
		holders[string(indexKey(g.Holder, g.ID))] = true
		if g.Parent != "" {
			derived[string(indexKey(g.Parent, g.ID))] = true
		}
	}
	a.everyParent()
	a.index(bucketHolders, holders)
	a.index(bucketDerived, derived)
}

// everyParent checks that each grant's parents are there and do not go in a circle: one
// that was not revoked with its parent would be a right that nobody gave.
func (a *kernelAudit) everyParent() {
	for _, id := range slices.Sorted(maps.Keys(a.grants)) {
		g := a.grants[id]
		if g.Parent == "" {
			continue
		}
		parent, there := a.grants[g.Parent]
		if !there {
			a.problem("grant %q: its parent %q is not there", id, g.Parent)
		} else if g.Depth != parent.Depth+1 {
			a.problem("grant %q: it is %d deep, its parent %d", id, g.Depth, parent.Depth)
		}
	}
}

// index holds an index against what the grants say, both ways.
func (a *kernelAudit) index(bucket []byte, wanted map[string]bool) {
	for key := range a.rows(bucket) {
		if !wanted[string(key)] {
			a.problem("index %s: %q is of no grant", bucket, key)
		}
		delete(wanted, string(key))
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		a.problem("index %s: lacks %q", bucket, strings.ReplaceAll(key, "\x00", " "))
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
