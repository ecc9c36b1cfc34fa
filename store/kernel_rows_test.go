package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
)

// inTx runs use in a transaction that is committed.
func inTx(t testing.TB, k *Kernel, use func(*KernelTx) error) {
	t.Helper()
	must(t, k.Update(use))
}

func newGrant(id, holder, parent string, depth int) *grant.Grant {
	return &grant.Grant{ID: id, Kind: grant.Tool, Pattern: "fetch", UsesLeft: grant.Unlimited, Holder: holder, Giver: "uid:7", Parent: parent, Depth: depth, Created: time.Unix(1, 0).UTC()}
}

// A scan below a user returns that user's accounts, and not those of one whose number
// begins with the same digits.
func TestAccountsBelow(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	run := agent.NewID()
	keys := []budget.Key{budget.OwnerKey(1), budget.NamespaceKey(1, "acme"), budget.NamespaceKey(1, "acme/x"), budget.RunKey(1, run), budget.OwnerKey(10), budget.NameKey(10, "b"), budget.RunKey(2, run)}
	inTx(t, k, func(tx *KernelTx) error {
		for _, key := range keys {
			if err := putUse(tx, key, 1); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, k.Read(func(tx *KernelTx) error {
		for under, want := range map[budget.Key][]budget.Key{"": keys, "1": keys[:4], "10": keys[4:6], "2": keys[6:], "3": nil, "1/ns:acme": keys[1:3]} {
			all, err := Accounts.Under(tx, under)
			var got []budget.Key
			for _, a := range all {
				got = append(got, a.Key)
			}
			slices.Sort(got)
			want = slices.Clone(want)
			slices.Sort(want)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("below %q: %v, %v", under, got, err)
			}
		}
		return nil
	}))
	inTx(t, k, func(tx *KernelTx) error { return Accounts.Delete(tx, string(budget.OwnerKey(10))) })
	wantUsed(t, k, budget.OwnerKey(10), 0)
}

// Keys that are none are refused, before anything is written.
func TestWrongKeysAreRefused(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	run := agent.NewID()
	for name, write := range map[string]func(*KernelTx) error{
		"account":        func(tx *KernelTx) error { return Accounts.Put(tx, &budget.Account{Key: "1/x:y"}) },
		"reservation":    func(tx *KernelTx) error { return Reservations.Put(tx, &budget.Reservation{Run: "x", ID: "1"}) },
		"no id":          func(tx *KernelTx) error { return Reservations.Put(tx, &budget.Reservation{Run: run}) },
		"answer":         func(tx *KernelTx) error { return Answers.Put(tx, run, "", nil) },
		"answer of none": func(tx *KernelTx) error { return Answers.Put(tx, "x", "key", nil) },
		"grant":          func(tx *KernelTx) error { return Grants.Put(tx, newGrant("", "h", "", 0)) },
		"grant, zero":    func(tx *KernelTx) error { return Grants.Put(tx, newGrant("a", "h\x00b", "", 0)) },
		"no parent":      func(tx *KernelTx) error { return Grants.Put(tx, newGrant("a", "h", "p", 1)) },
	} {
		must(t, k.Update(func(tx *KernelTx) error {
			if err := write(tx); err == nil || tx.wrote {
				t.Errorf("%s: %v, wrote %v", name, err, tx.wrote)
			}
			return nil
		}))
	}
}

// A run has so many open reservations and no more; those of others do not count.
func TestReservationsAreBounded(t *testing.T) {
	t.Parallel()
	k := openKernel(t, kernelFile(t)) // not checked: no account holds them
	run, other := agent.NewID(), agent.NewID()
	put := func(tx *KernelTx, run agent.ID, id int) error {
		return Reservations.Put(tx, &budget.Reservation{Run: run, ID: fmt.Sprint(id), Made: time.Unix(1, 0).UTC()})
	}
	inTx(t, k, func(tx *KernelTx) error {
		for i := range maxReservations {
			if err := put(tx, run, i); err != nil {
				return err
			}
		}
		return put(tx, run, 0) // again is no other
	})
	wantKind(t, k.Update(func(tx *KernelTx) error { return put(tx, run, maxReservations) }), agent.KindConflict)
	inTx(t, k, func(tx *KernelTx) error {
		return firstOf(put(tx, other, 1), Reservations.Delete(tx, RunKey(run, "7")), put(tx, run, maxReservations))
	})
	must(t, k.Read(func(tx *KernelTx) error {
		mine, err := Reservations.Below(tx, RunKey(run, ""))
		all, err2 := Reservations.Below(tx, "")
		gone, err3 := Reservations.Get(tx, RunKey(run, "7"))
		if len(mine) != maxReservations || len(all) != maxReservations+1 || gone != nil {
			t.Errorf("%d of the run, %d in all", len(mine), len(all))
		}
		return firstOf(err, err2, err3)
	}))
}

// The first answer to a key is kept, and the oldest of a run is forgotten.
func TestAnswers(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	run, other := agent.NewID(), agent.NewID()
	inTx(t, k, func(tx *KernelTx) error {
		err := Answers.Put(tx, other, "0", []byte{})
		for i := range maxAnswers + 5 {
			err = firstOf(err, Answers.Put(tx, run, fmt.Sprint(i), []byte(fmt.Sprint("answer ", i))))
		}
		return err
	})
	inTx(t, k, func(tx *KernelTx) error {
		if err := Answers.Put(tx, run, "5", nil); err == nil {
			t.Error("an answer was replaced")
		}
		for key, want := range map[string][]byte{"4": nil, "5": []byte("answer 5"), "4100": []byte("answer 4100"), "none": nil} {
			if got, err := Answers.Get(tx, run, key); err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("%s: %q, %v", key, got, err)
			}
		}
		if got, err := Answers.Get(tx, other, "0"); err != nil || got == nil {
			t.Errorf("an empty answer is none: %v, %v", got, err)
		}
		return nil
	})
}

// However often an agent calls, the answers to users stay, and the other way round.
func TestAnswersToUsersHaveAnOrderOfTheirOwn(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	for name, row := range map[string]struct {
		one, many func(*KernelTx, agent.ID, string, []byte) error
	}{
		"an agent that floods": {Answers.PutUsers, Answers.Put},
		"a user that floods":   {Answers.Put, Answers.PutUsers},
	} {
		run := agent.NewID()
		inTx(t, k, func(tx *KernelTx) error {
			err := firstOf(row.many(tx, run, "first", []byte("x")), row.one(tx, run, "one", []byte("kept")))
			for i := range maxAnswers {
				err = firstOf(err, row.many(tx, run, fmt.Sprint(i), []byte("x")))
			}
			return err
		})
		inTx(t, k, func(tx *KernelTx) error {
			one, err := Answers.Get(tx, run, "one")
			first, err2 := Answers.Get(tx, run, "first")
			if string(one) != "kept" || first != nil {
				t.Errorf("%s: %q, and of its own oldest %q", name, one, first)
			}
			return firstOf(err, err2)
		})
	}
}

// Audit entries keep their order and their numbers, also when the queue was emptied.
func TestAuditQueue(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	record := func(first, last int) {
		inTx(t, k, func(tx *KernelTx) error {
			for i := first; i <= last; i++ {
				if number, err := AuditQueue.Add(tx, []byte(fmt.Sprint(i))); err != nil || number != uint64(i) {
					t.Errorf("number %d of %d, %v", number, i, err)
				}
			}
			return nil
		})
	}
	want := func(after uint64, limit, first, count int) {
		t.Helper()
		must(t, k.Read(func(tx *KernelTx) error {
			queue, err := AuditQueue.After(tx, after, limit)
			if len(queue) != count {
				t.Fatalf("%d entries", len(queue))
			}
			for i, e := range queue {
				if e.Number != uint64(first+i) || string(e.Entry) != fmt.Sprint(first+i) {
					t.Errorf("%+v", e)
				}
			}
			return err
		}))
	}
	record(1, 300)
	want(0, 10, 1, 10)
	want(295, 10, 296, 5)
	inTx(t, k, func(tx *KernelTx) error { return AuditQueue.DeleteUpTo(tx, 298) })
	want(0, 10, 299, 2)
	inTx(t, k, func(tx *KernelTx) error { return AuditQueue.DeleteUpTo(tx, 1<<40) })
	want(0, 10, 0, 0)
	record(301, 302)
	want(0, 10, 301, 2)
}

// A grant is found by its id, its holder and its parent, and goes with all derived from it.
func TestGrants(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	rows := []*grant.Grant{newGrant("a", "h", "", 0), newGrant("b", "i", "a", 1), newGrant("c", "j", "b", 2), newGrant("d", "h", "", 0), newGrant("e", "h2", "a", 1)}
	inTx(t, k, func(tx *KernelTx) error {
		for _, g := range rows {
			if err := Grants.Put(tx, g); err != nil {
				return err
			}
		}
		spent := *rows[3]
		spent.UsesLeft = 4
		return Grants.Put(tx, &spent)
	})
	if err := k.Update(func(tx *KernelTx) error { return Grants.Put(tx, newGrant("a", "other", "", 0)) }); err == nil {
		t.Error("a grant has changed hands")
	}
	wantDeleted := func(want ...string) func([]*grant.Grant, error) {
		return func(gone []*grant.Grant, err error) {
			var got []string
			for _, g := range gone {
				got = append(got, g.ID)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("deleted: %q, %v, want %q", got, err, want)
			}
		}
	}
	inTx(t, k, func(tx *KernelTx) error {
		wantGrants(t, "held")(Grants.HeldBy(tx, "h"))("a", "d")
		wantGrants(t, "derived")(Grants.Indexed(tx, string(bucketDerived), "a"))("b", "e")
		if g, err := Grants.Get(tx, "d"); err != nil || g.UsesLeft != 4 {
			t.Errorf("%+v, %v", g, err)
		}
		wantDeleted("a", "b", "c", "e")(Grants.Delete(tx, "a"))
		wantGrants(t, "held by j")(Grants.HeldBy(tx, "j"))()
		wantDeleted()(Grants.Delete(tx, "a"))
		wantGrants(t, "left")(Grants.HeldBy(tx, "h"))("d")
		return nil
	})
}

// wantGrants fails unless the grants have these ids.
func wantGrants(t *testing.T, what string) func([]*grant.Grant, error) func(...string) {
	return func(all []*grant.Grant, err error) func(...string) {
		return func(ids ...string) {
			t.Helper()
			var got []string
			for _, g := range all {
				got = append(got, g.ID)
			}
			if err != nil || !slices.Equal(got, ids) {
				t.Errorf("%s: %q, %v, want %q", what, got, err, ids)
			}
		}
	}
}

func TestGrantsAreBounded(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	inTx(t, k, func(tx *KernelTx) error {
		for i := range maxGrants {
			if err := Grants.Put(tx, newGrant(fmt.Sprint(i), "h", "", 0)); err != nil {
				return err
			}
		}
		return firstOf(Grants.Put(tx, newGrant("0", "h", "", 0)), Grants.Put(tx, newGrant("x", "h2", "", 0)))
	})
	wantKind(t, k.Update(func(tx *KernelTx) error { return Grants.Put(tx, newGrant("more", "h", "", 0)) }), agent.KindConflict)
}

// Nothing of a forgotten run is left, its reservations are released, and others keep
// theirs.
func TestForgetRun(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	gone, kept := newSpender(t, k, 7, 100), newSpender(t, k, 7, 100)
	for _, s := range []*spender{gone, kept} {
		for range 3 {
			if ok, err := s.reserve(5); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		must(t, s.settle(2))
		inTx(t, k, func(tx *KernelTx) error {
			return firstOf(Answers.Put(tx, s.run, "key", []byte("yes")), Grants.Put(tx, newGrant(string(s.run)+"-g", string(s.run), "", 0)))
		})
	}
	inTx(t, k, func(tx *KernelTx) error {
		return Grants.Put(tx, newGrant("derived", string(kept.run), string(gone.run)+"-g", 1))
	})
	inTx(t, k, func(tx *KernelTx) error {
		open, err := Reservations.Below(tx, RunKey(gone.run, ""))
		if len(open) != 2 {
			t.Errorf("%d are open before", len(open))
		}
		_, forgetErr := tx.ForgetRun(7, gone.run)
		return firstOf(err, forgetErr)
	})
	inTx(t, k, func(tx *KernelTx) error {
		_, err := tx.ForgetRun(7, gone.run) // again is no error
		account, err4 := Accounts.Get(tx, string(budget.RunKey(7, gone.run)))
		open, err5 := Reservations.Below(tx, RunKey(gone.run, ""))
		given, err6 := Grants.Get(tx, string(gone.run)+"-g")
		derived, err7 := Grants.Get(tx, "derived")
		if account != nil || len(open) > 0 || given != nil || derived != nil {
			t.Errorf("left: %+v, %v, %v, %v", account, open, given, derived)
		}
		answer, err2 := Answers.Get(tx, gone.run, "key")
		theirs, err3 := Answers.Get(tx, kept.run, "key")
		if answer != nil || theirs == nil {
			t.Errorf("%q, %q", answer, theirs)
		}
		return firstOf(err, err2, err3, err4, err5, err6, err7)
	})
	if line, err := kept.line(); err != nil || line.Used != 4 || line.Reserved != 10 {
		t.Errorf("%+v, %v", line, err)
	}
}

// A transaction ends with its function, and reading does not write.
func TestATransactionEnds(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	var leaked *KernelTx
	inTx(t, k, func(tx *KernelTx) error { leaked = tx; return nil })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it is used after its end")
			}
		}()
		Accounts.Get(leaked, "7")
	}()
	if err := k.Read(count("7")); err == nil {
		t.Error("a reader wrote")
	}
	if err := k.Read(func(*KernelTx) error { return errRefused }); !errors.Is(err, errRefused) || err != errRefused {
		t.Errorf("%v", err)
	}
	inTx(t, k, count("7"))
}
