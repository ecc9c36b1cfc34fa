package store

import (
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// rawPut is a row that no method writes.
func rawPut(bucket []byte, key, value string) func(*KernelTx, *spender) error {
	return func(tx *KernelTx, _ *spender) error { return tx.put(bucket, []byte(key), []byte(value)) }
}

// editLine spoils n of the user's account.
func editLine(change func(*budget.Line)) func(*KernelTx, *spender) error {
	return func(tx *KernelTx, s *spender) error {
		a, err := Accounts.Get(tx, string(budget.OwnerKey(s.uid)))
		change(a.Lines["n"])
		return firstOf(err, Accounts.Put(tx, a))
	}
}

// kernelSpoilings break each invariant once, with what Check must say of it. The spender
// has one open reservation of 5, an answer and a grant "g" from which "h" is derived.
var kernelSpoilings = map[string]struct {
	spoil func(*KernelTx, *spender) error
	says  string
}{
	"account of no user":     {rawPut(bucketAccounts, "x", `{"lines":{}}`), `account "x": it has no owner`},
	"account that is none":   {rawPut(bucketAccounts, "9", `{`), `account "9":`},
	"line that is nothing":   {rawPut(bucketAccounts, "9", `{"lines":{"n":null}}`), "n is nothing"},
	"no dimension":           {rawPut(bucketAccounts, "9", `{"lines":{"N":{}}}`), "it is not a dimension"},
	"reserved too much":      {editLine(func(l *budget.Line) { l.Reserved++ }), "6 of n are reserved, the reservations say 5"},
	"reserved too little":    {editLine(func(l *budget.Line) { l.Reserved = 0 }), "0 of n are reserved, the reservations say 5"},
	"negative":               {editLine(func(l *budget.Line) { l.WarnAt = -1 }), "an amount is negative"},
	"warning after the end":  {editLine(func(l *budget.Line) { l.WarnAt = l.Granted + 1 }), "its limit is out of range"},
	"peak below":             {editLine(func(l *budget.Line) { l.Used = 1 }), "more is used than at the peak"},
	"assumed unused":         {editLine(func(l *budget.Line) { l.Assumed = 1 }), "more is assumed than used"},
	"breached and not":       {editLine(func(l *budget.Line) { l.Breached = true }), "it is exceeded, and it is not"},
	"period":                 {editLine(func(l *budget.Line) { l.Period = "year" }), "its period is none"},
	"period without a start": {editLine(func(l *budget.Line) { l.Period, l.PeriodStart = budget.Day, l.PeriodStart.Add(1) }), "its period began at no beginning"},
	"shortage of a user": {func(tx *KernelTx, s *spender) error {
		a, err := Accounts.Get(tx, string(budget.OwnerKey(s.uid)))
		a.Short = &budget.Shortage{Account: a.Key, Dimension: "n"}
		return firstOf(err, Accounts.Put(tx, a))
	}, "it is no run's, and is stopped by a reservation"},
	"account gone": {func(tx *KernelTx, s *spender) error { return Accounts.Delete(tx, string(budget.OwnerKey(s.uid))) },
		"there is no n, and reservations hold 5 of it"},
	"reservation gone": {func(tx *KernelTx, s *spender) error { return Reservations.Delete(tx, RunKey(s.run, "1")) }, "5 of n are reserved, the reservations say 0"},
	"reservation of another": {func(tx *KernelTx, s *spender) error {
		r, err := Reservations.Get(tx, RunKey(s.run, "1"))
		return firstOf(err, tx.store(bucketReservations, string(s.run)+"/2", r))
	}, "says that it is"},
	"reservation that is none": {rawPut(bucketReservations, "x", `{`), `reservation "x"`},
	"reservation holds more": {func(tx *KernelTx, s *spender) error {
		r, err := Reservations.Get(tx, RunKey(s.run, "1"))
		r.Held["7"]["n"] = 6
		return firstOf(err, Reservations.Put(tx, r))
	}, "holds 6 of n in 7, and is of 5"},
	"daily sum of no day":       {rawPut(bucketDays, "2026-11-31/7/n", "1"), "is no day, user and dimension"},
	"daily sum of no user":      {rawPut(bucketDays, "2026-11-30/x/n", "1"), "is no day, user and dimension"},
	"daily sum of no dimension": {rawPut(bucketDays, "2026-11-30/7/N", "1"), "is no day, user and dimension"},
	"daily sum that is none":    {rawPut(bucketDays, "2026-11-30/7/n", "{"), `daily sum "2026-11-30/7/n"`},
	"daily sum below zero":      {rawPut(bucketDays, "2026-11-30/7/n", "-1"), "is negative"},
	"answer without order":      {func(tx *KernelTx, s *spender) error { return tx.put(bucketAnswers, []byte(RunKey(s.run, "z")), nil) }, "the order lacks it"},
	"order without answer":      {func(tx *KernelTx, s *spender) error { return tx.delete(bucketAnswers, []byte(RunKey(s.run, "key"))) }, "the order has it"},
	"order twice": {func(tx *KernelTx, s *spender) error {
		return tx.put(bucketAnswerOrder, append([]byte(s.run+"/"), numberKey(2)...), []byte("key"))
	}, "the order has it"},
	"order of no run":  {rawPut(bucketAnswerOrder, "x", "key"), "it is no number of a run"},
	"grant of another": {func(tx *KernelTx, _ *spender) error { return tx.store(bucketGrants, "k", newGrant("g", "x", "", 0)) }, `grant "k": says that it is "g"`},
	"grant of nothing": {func(tx *KernelTx, _ *spender) error {
		g := newGrant("k", "x", "", 0)
		g.Pattern = ""
		return Grants.Put(tx, g)
	}, `grant "k"`},
	"grant that is no":  {rawPut(bucketGrants, "k", "{"), `grant "k"`},
	"no parent":         {func(tx *KernelTx, _ *spender) error { return tx.delete(bucketGrants, []byte("g")) }, `its parent "g" is not there`},
	"depth":             {func(tx *KernelTx, _ *spender) error { return Grants.Put(tx, newGrant("h", "x", "g", 7)) }, "it is 7 deep, its parent 0"},
	"holder without":    {rawPut(bucketHolders, "x\x00nothing", ""), "is of no grant"},
	"grant unheld":      {func(tx *KernelTx, _ *spender) error { return tx.delete(bucketHolders, indexKey("x", "h")) }, "index holders: lacks"},
	"grant underived":   {func(tx *KernelTx, _ *spender) error { return tx.delete(bucketDerived, indexKey("g", "h")) }, "index derived: lacks"},
	"entry from ahead":  {rawPut(bucketAudit, "\x7f0000000", "entry"), "it is none of 1"},
	"entry of no order": {rawPut(bucketAudit, "x", "entry"), "it is none of 1"},
}

// Check names what is broken in kernel.db, and has nothing to say before.
func TestKernelCheckFinds(t *testing.T) {
	t.Parallel()
	for name, c := range kernelSpoilings {
		t.Run(name, func(t *testing.T) {
			k := openKernel(t, kernelFile(t))
			k.db.NoSync = true
			s := newSpender(t, k, 7, 100)
			ok, err := s.reserve(5)
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			inTx(t, k, func(tx *KernelTx) error {
				_, err := AuditQueue.Add(tx, []byte("entry"))
				return firstOf(err, Answers.Put(tx, s.run, "key", []byte("answer")), Grants.Put(tx, newGrant("g", "x", "", 0)), Grants.Put(tx, newGrant("h", "x", "g", 1)))
			})
			if problems, err := k.Check(); err != nil || problems != nil {
				t.Fatalf("before: %v %v", problems, err)
			}
			inTx(t, k, func(tx *KernelTx) error { return c.spoil(tx, s) })
			problems, err := k.Check()
			must(t, err)
			if !strings.Contains(strings.Join(problems, "\n"), c.says) {
				t.Errorf("got %q, want one that says %q", problems, c.says)
			}
		})
	}
}

// More answers than are ever kept would never be forgotten.
func TestKernelCheckCountsAnswers(t *testing.T) {
	t.Parallel()
	k := openKernel(t, kernelFile(t))
	k.db.NoSync = true
	run := agent.NewID()
	inTx(t, k, func(tx *KernelTx) (err error) {
		for i := range uint64(maxAnswers + 1) {
			key := string(numberKey(i))
			err = firstOf(err, tx.put(bucketAnswers, []byte(RunKey(run, key)), nil), tx.put(bucketAnswerOrder, append([]byte(run+"/"), key...), []byte(key)))
		}
		return err
	})
	problems, err := k.Check()
	must(t, err)
	if len(problems) != 1 || !strings.Contains(problems[0], "more than 4096 answers") {
		t.Errorf("%q", problems)
	}
}

// A file without one of its buckets is damaged, not empty.
func TestKernelWithoutABucket(t *testing.T) {
	t.Parallel()
	k := openKernel(t, kernelFile(t))
	must(t, k.db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketGrants) }))
	_, err := k.Check()
	wantKind(t, err, agent.KindInternal)
	err = k.Update(func(tx *KernelTx) error { _, err := Grants.Get(tx, "g"); return err })
	wantKind(t, err, agent.KindInternal)
}
