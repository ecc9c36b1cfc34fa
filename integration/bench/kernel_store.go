package main

import (
	spending "clove.run/clove/kernel/ledger"
	"context"
	"errors"
	"math"
	"path/filepath"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// The peers without a socket.
const (
	peerStore = "the store's Go API"
	peerGo    = "the kernel's Go API"
)

// storeTurns of each caller in a round: without a socket they are soon over.
const storeTurns = 40

// storeSpender reserves and releases in a kernel.db by Go calls.
type storeSpender struct {
	file *store.Kernel
	run  agent.ID
}

// measureStore measures what the group commit gains where no socket is in the way.
func (b *bench) measureStore(s *shared) (err error) {
	file, err := store.OpenKernel(filepath.Join(b.scratch, "store", "kernel.db"), time.Second, kernel.Tables()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p := &storeSpender{file, agent.NewID()}
	account := &budget.Account{Key: budget.RunKey(0, p.run)}
	if _, err := account.Set(budget.Limit{Dimension: spent, Granted: budget.MaxAmount}, 0, time.Now()); err != nil {
		return err
	}
	if err := file.Update(func(tx *store.KernelTx) error { return tx.PutAccount(account) }); err != nil {
		return err
	}
	var one, many []float64
	for round := range warmups + b.rounds {
		alone, err := p.rate(1)
		if err != nil {
			return err
		}
		together, err := p.rate(ledgerCallers)
		if err != nil {
			return err
		}
		if round >= warmups {
			one, many = append(one, alone), append(many, together)
		}
	}
	s.Figures = append(s.Figures, kernelFigure{What: whatRate1, Peer: peerStore, Unit: unitAnswers, Values: spreadOf(one)},
		kernelFigure{What: whatRate64, Peer: peerStore, Unit: unitAnswers, Values: spreadOf(many)},
		kernelFigure{What: whatGain, Peer: peerStore, Unit: unitTimes, Values: spreadOf(quotients(many, one)), Aim: "20 or more"})
	return nil
}

// rate is the changes a second of so many callers. Afterwards it removes their audit
// entries, as cloved does when the log has them.
func (p *storeSpender) rate(callers int) (float64, error) {
	began := time.Now()
	_, err := atOnce(callers, func(int) ([]float64, error) { return nil, p.spend(storeTurns) })
	rate := float64(callers*storeTurns) / time.Since(began).Seconds()
	return rate, errors.Join(err, p.file.Update(func(tx *store.KernelTx) error { return tx.ForgetAudit(math.MaxUint64) }))
}

func (p *storeSpender) spend(turns int) error {
	for range turns / 2 {
		var id string
		err := p.file.Update(func(tx *store.KernelTx) (err error) { id, err = p.reserve(tx); return err })
		if err == nil {
			err = p.file.Update(func(tx *store.KernelTx) error { return p.release(tx, id) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *storeSpender) reserve(tx *store.KernelTx) (id string, err error) {
	chain, err := tx.Chain(budget.RunKey(0, p.run))
	if err != nil {
		return "", err
	}
	r := budget.Reservation{ID: string(agent.NewID()), Run: p.run, Service: "bench", Amounts: budget.Amounts{spent: 1}}
	if err := chain.Reserve(&r, time.Now()); err != nil {
		return "", err
	}
	_, err = tx.Record([]byte(auditEntry))
	return r.ID, errors.Join(tx.PutReservation(r), tx.PutChain(chain), err)
}

func (p *storeSpender) release(tx *store.KernelTx, id string) error {
	r, err := tx.Reservation(p.run, id)
	if err != nil {
		return err
	}
	chain, err := tx.Chain(r.Accounts()...)
	if err == nil {
		err = chain.Release(*r)
	}
	if err != nil {
		return err
	}
	_, err = tx.Record([]byte(auditEntry))
	return errors.Join(tx.DeleteReservation(p.run, id), tx.PutChain(chain), err)
}

// reservations is how many reservations of a service are timed.
const reservations = 1000

// measureReservations measures a service's reservation that a settlement has made ahead, at the
// Go API: no method of an agent's leads there. An agent also waits for its call's way, for which
// a check's is added, whose answer comes from memory too.
func (b *bench) measureReservations(s *shared) (err error) {
	k, err := b.openKernel("reservations")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	run := agent.Run{Spec: idleSpec("reservations")}
	run.Spec.Kernel.Grants = []string{"model:bench"}
	if err := k.Attach(context.Background(), run, true, func(api.Standing) {}); err != nil {
		return err
	}
	one := budget.Amounts{budget.ModelCalls: 1}
	call := spending.Spending{Service: "bench", Method: "model.call", What: "model:bench", Fit: func(budget.Left) (budget.Amounts, error) { return one, nil }}
	var took []float64
	for n := range reservations + 1 {
		began := time.Now()
		id, err := k.Ledger.Reserve(run, call)
		if err != nil {
			return err
		}
		if n > 0 { // nothing is made ahead for the first
			took = append(took, millis(time.Since(began)))
		}
		if err := k.Ledger.Settle(run, spending.Settlement{Service: call.Service, Reservation: id, Used: one, Ahead: one}); err != nil {
			return err
		}
	}
	const what = "a reservation made ahead"
	inside := spreadOf(took)
	s.Figures = append(s.Figures, kernelFigure{What: what, Peer: peerGo, Unit: unitMS, Values: inside})
	for _, f := range s.Figures {
		if f.What == whatCheck && f.Peer == ledgerClove {
			way := spread{P50: f.Values.P50 + inside.P50, P95: f.Values.P95 + inside.P95, P99: f.Values.P99 + inside.P99, Samples: f.Values.Samples}
			s.Figures = append(s.Figures, kernelFigure{What: what, Peer: "that and a check's way", Unit: unitMS, Values: way, Aim: "0.5"})
			break
		}
	}
	return nil
}

// benchKernel is a Kernel with files of its own.
type benchKernel struct {
	*kernel.Kernel
	file *store.Kernel
	log  *audit.Log
}

func (b *bench) openKernel(name string) (*benchKernel, error) {
	dir := filepath.Join(b.scratch, name)
	file, err := store.OpenKernel(filepath.Join(dir, "kernel.db"), time.Second, kernel.Tables()...)
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.RunOptions())
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	k, err := kernel.New(kernel.Config{Store: file, Log: log})
	return &benchKernel{k, file, log}, err
}

func (k *benchKernel) Close() error {
	return errors.Join(k.Kernel.Close(), k.log.Close(), k.file.Close())
}
