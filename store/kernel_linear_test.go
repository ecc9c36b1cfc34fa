package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"clove.run/clove/agent"
	"clove.run/clove/internal/linear"
	"clove.run/clove/kernel/budget"
)

// spender is one run of a user, that spends n of its own and its user's account.
type spender struct {
	k    *Kernel
	uid  uint32
	run  agent.ID
	made int
	open []budget.Reservation
	note func(tx *KernelTx, what string) error // if set, called in each transaction
}

// newSpender stores the user's account with a limit of n, if there is none.
func newSpender(t testing.TB, k *Kernel, uid uint32, granted int64) *spender {
	t.Helper()
	s := &spender{k: k, uid: uid, run: agent.NewID()}
	must(t, k.Update(func(tx *KernelTx) error {
		owner, err := Accounts.Get(tx, string(budget.OwnerKey(uid)))
		if err != nil || owner != nil {
			return err
		}
		owner = &budget.Account{Key: budget.OwnerKey(uid)}
		if _, err := owner.Set(budget.Limit{Dimension: "n", Granted: granted}, 0, time.Now()); err != nil {
			return err
		}
		return Accounts.Put(tx, owner)
	}))
	return s
}

// chain is that of the run, whose account need not exist.
func (s *spender) chain(tx *KernelTx) (budget.Chain, error) {
	keys := []budget.Key{budget.RunKey(s.uid, s.run), budget.OwnerKey(s.uid)}
	chain, err := Accounts.Chain(tx, keys...)
	if err == nil && (len(chain) == 0 || chain[0].Key != keys[0]) {
		chain = append(budget.Chain{{Key: keys[0]}}, chain...)
	}
	return chain, err
}

// change runs spend on the chain, and stores what it changed.
func (s *spender) change(what string, spend func(*KernelTx, budget.Chain) error) error {
	return s.k.Update(func(tx *KernelTx) error {
		c, err := s.chain(tx)
		if err == nil {
			err = spend(tx, c)
		}
		if err == nil {
			err = Accounts.PutChain(tx, c)
		}
		if err == nil && s.note != nil {
			err = s.note(tx, what)
		}
		return err
	})
}

// reserve reports whether amount was reserved.
func (s *spender) reserve(amount int64) (bool, error) {
	s.made++
	r := budget.Reservation{ID: fmt.Sprint(s.made), Run: s.run, Service: "test", Amounts: budget.Amounts{"n": amount}}
	err := s.change("reserved "+r.ID, func(tx *KernelTx, c budget.Chain) error {
		if err := c.Reserve(&r, time.Now()); err != nil {
			return err
		}
		return Reservations.Put(tx, &r)
	})
	var exceeded *budget.Exceeded
	if errors.As(err, &exceeded) {
		return false, nil
	}
	s.open = append(s.open, r)
	return true, err
}

// settle settles the oldest reservation.
func (s *spender) settle(actual int64) error {
	r := s.open[0]
	s.open = s.open[1:]
	return s.change("settled "+r.ID, func(tx *KernelTx, c budget.Chain) error {
		if _, err := c.Settle(r, budget.Amounts{"n": actual}, time.Now()); err != nil {
			return err
		}
		return Reservations.Delete(tx, RunKey(r.Run, r.ID))
	})
}

func (s *spender) charge(amount int64) error {
	return s.change("charged", func(_ *KernelTx, c budget.Chain) error {
		_, err := c.Charge(budget.Amounts{"n": amount}, time.Now())
		return err
	})
}

// line is n of the user's account.
func (s *spender) line() (line budget.Line, err error) {
	err = s.k.Read(func(tx *KernelTx) error {
		a, err := Accounts.Get(tx, string(budget.OwnerKey(s.uid)))
		if err == nil {
			line = *a.Lines["n"]
		}
		return err
	})
	return line, err
}

// step calls one operation of those that are possible, and returns it with its answer.
func (s *spender) step(dice *rand.Rand, account int, granted int64) (in linear.BudgetInput, out linear.BudgetOutput, err error) {
	in = linear.BudgetInput{Op: linear.BudgetReserve, Account: account, Granted: granted, Amount: dice.Int64N(8) + 1}
	var fits bool
	switch roll := dice.IntN(10); {
	case roll < 3:
		in.Op = linear.BudgetShow
		var line budget.Line
		line, err = s.line()
		out = linear.BudgetOutput{Used: line.Used, Reserved: line.Reserved}
	case roll < 6 && len(s.open) > 0:
		in.Op, in.Held, in.Amount = linear.BudgetSettle, s.open[0].Amounts["n"], dice.Int64N(3)
		err = s.settle(in.Amount)
	case roll < 7:
		in.Op, in.Amount = linear.BudgetCharge, 1
		err = s.charge(1)
	default:
		fits, err = s.reserve(in.Amount)
		out.Refused = !fits
	}
	return in, out, err
}

// 64 callers see budgets as if one called after the other.
func TestBudgetsAreLinearizable(t *testing.T) {
	t.Parallel()
	const accounts, callers, steps = 8, 64, 30
	const granted = 120
	k := openKernelNew(t)
	k.db.NoSync = true
	began := time.Now()
	var (
		mu      sync.Mutex // guards history
		history []porcupine.Operation
		all     sync.WaitGroup
	)
	for caller := range callers {
		s := newSpender(t, k, uint32(caller%accounts), granted)
		all.Go(func() {
			dice := rand.New(rand.NewPCG(1, uint64(caller)))
			for range steps {
				o := porcupine.Operation{ClientId: caller, Call: int64(time.Since(began))}
				in, out, err := s.step(dice, caller%accounts, granted)
				if err != nil {
					t.Error(err)
					return
				}
				o.Input, o.Output, o.Return = in, out, int64(time.Since(began))
				mu.Lock()
				history = append(history, o)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err := linear.CheckBudgets(history, patience); err != nil {
		t.Error(err)
	}
}

// Of a hundred concurrent reservations of one, as many are granted as the limit allows.
func TestReservationsNeverOvershoot(t *testing.T) {
	t.Parallel()
	const granted = 37
	k := openKernelNew(t)
	var reserved atomic.Int64
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range 100 {
		s := newSpender(t, k, 7, granted)
		all.Go(func() {
			<-begin
			if ok, err := s.reserve(1); err != nil {
				t.Error(err)
			} else if ok {
				reserved.Add(1)
			}
		})
	}
	close(begin)
	all.Wait()
	line, err := (&spender{k: k, uid: 7}).line()
	must(t, err)
	if reserved.Load() != granted || line.Reserved != granted {
		t.Errorf("%d were reserved, %d are stored, want %d", reserved.Load(), line.Reserved, granted)
	}
}
