package kernel

import (
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// Block is a part of what a run may spend, for one service of clove's. Drawing and ending it
// are durable. In between the service reserves and settles in memory, so that a call of an
// agent does not wait for the disk. Its methods may be called from many goroutines.
//
// After a crash a block is released if its service had reserved nothing in it, and otherwise
// settled in full (Sweep). The end of its run ends it.
type Block struct {
	kernel *Kernel
	run    agent.Run
	drawn  budget.Reservation

	mu      sync.Mutex      // guards the following
	account *budget.Account // grants what was drawn
	begun   bool            // the file says that the service may have begun
	ended   bool
}

// Hold is an amount that is reserved in a block. It is settled or released once; what
// comes later changes nothing.
type Hold struct {
	block    *Block
	reserved budget.Reservation
	settled  bool // block.mu guards it
}

// Draw takes a block of a run's budget for a service, from all accounts of the run or from
// none. It returns when that is durable. The error is of api.CodeBudget where it does not fit.
func (k *Kernel) Draw(run agent.Run, service string, amounts budget.Amounts) (*Block, error) {
	b := &Block{kernel: k, run: run}
	if err := k.room(); err != nil {
		return nil, err
	}
	err := k.within(run, func(c *call) error {
		b.drawn = budget.Reservation{ID: string(agent.NewID()), Run: run.Spec.ID, Service: service, Amounts: amounts}
		chain, err := chainOf(c.tx, run)
		if err != nil {
			return err
		}
		if err := chain.Reserve(&b.drawn, c.now); err != nil {
			return c.exceeded(chain, err)
		}
		return firstError(c.tx.PutReservation(b.drawn), c.tx.PutChain(chain), record(c.tx, c.serviceEntry(b.drawn, api.MethodBudgetReserve, amounts)))
	})
	if err != nil {
		e := (&call{Caller: Caller{Run: run}, now: k.now()}).serviceEntry(b.drawn, api.MethodBudgetReserve, amounts)
		e.Verdict, e.Code = audit.VerdictDeny, api.ErrorOf(err).Data.Word
		_ = k.config.Log.Enqueue(e) // as in refused
		return nil, err
	}
	b.account = b.drawn.Block()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.blocks[b.drawn.ID] = b
	return b, nil
}

// serviceEntry is the audit entry of what a service does with its reservation.
func (c *call) serviceEntry(r budget.Reservation, method string, amounts budget.Amounts) audit.Entry {
	c.about = budgetText(amounts)
	e := c.entry(method, audit.VerdictAllow, digestOf(method, []byte(c.about)))
	e.Kind, e.Principal = audit.KindDecision, audit.PrincipalService(r.Service)
	return e
}

// Reserve takes amounts from the block. Where they do not fit the error is a
// *budget.Exceeded: the service draws another block. Only the first one waits for the disk.
func (b *Block) Reserve(amounts budget.Amounts) (*Hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil, endedBlock()
	}
	for d, amount := range amounts {
		if b.account.Lines[d] == nil && amount > 0 {
			return nil, &budget.Exceeded{Notice: budget.Notice{Dimension: d, AtEnd: budget.Refuse}, Wanted: amount}
		}
	}
	h := &Hold{block: b, reserved: budget.Reservation{Amounts: amounts}}
	if err := b.chain().Reserve(&h.reserved, b.kernel.now()); err != nil {
		return nil, err
	}
	if err := b.begin(); err != nil {
		return nil, firstError(b.chain().Release(h.reserved), err)
	}
	return h, nil
}

func endedBlock() error {
	return api.Failure(api.CodeConflict, "draw another one", "the block has ended")
}

// begin notes in the file that the service may have begun. b.mu is held, so that nobody
// reserves before that is durable.
func (b *Block) begin() error {
	if b.begun {
		return nil
	}
	err := b.kernel.within(b.run, func(c *call) error {
		r, err := c.tx.Reservation(b.drawn.Run, b.drawn.ID)
		if err == nil && r == nil {
			err = endedBlock()
		}
		if err != nil {
			return err
		}
		r.Begun = true
		return c.tx.PutReservation(*r)
	})
	b.begun = err == nil
	return err
}

// chain is what is spent from inside of the block. b.mu is held.
func (b *Block) chain() budget.Chain { return budget.Chain{b.account} }

// Settle counts what was used, and returns what of it exceeds the hold. That is charged to
// the run durably, because it has happened.
func (h *Hold) Settle(used budget.Amounts) (over budget.Amounts, err error) {
	if err := used.Validate(); err != nil {
		return nil, err
	}
	covered, over := h.reserved.Covers(used)
	first, err := h.settle(covered)
	if err != nil || !first || len(over) == 0 {
		return nil, err
	}
	b := h.block
	return over, b.kernel.within(b.run, func(c *call) error {
		chain, err := chainOf(c.tx, b.run)
		if err != nil {
			return err
		}
		effects, err := chain.Charge(over, c.now)
		if err != nil {
			return err
		}
		return firstError(c.putSpent(chain, effects), record(c.tx, c.serviceEntry(b.drawn, api.MethodBudgetCharge, over)))
	})
}

// settle counts in the block, and reports whether it was the first to. In a block that has
// ended the whole hold was counted.
func (h *Hold) settle(used budget.Amounts) (first bool, err error) {
	b := h.block
	b.mu.Lock()
	defer b.mu.Unlock()
	if first = !h.settled; first && !b.ended {
		_, err = b.chain().Settle(h.reserved, used, b.kernel.now())
	}
	h.settled = true
	return first, err
}

// Release gives the hold back: nothing was used.
func (h *Hold) Release() error {
	_, err := h.settle(nil)
	return err
}

// End settles the block durably with what was used in it. What is still held counts in
// full, as assumed: the services end their blocks when nothing is under way any more. A
// second End does nothing.
func (b *Block) End() error {
	used, held, first := b.finish()
	if !first {
		return nil
	}
	b.kernel.mu.Lock()
	delete(b.kernel.blocks, b.drawn.ID)
	b.kernel.mu.Unlock()
	return b.kernel.within(b.run, func(c *call) error {
		r, err := c.tx.Reservation(b.drawn.Run, b.drawn.ID)
		if err != nil || r == nil { // its run has ended since
			return err
		}
		chain, err := c.tx.Chain(r.Accounts()...)
		if err != nil {
			return err
		}
		effects, err := chain.SettleBlock(*r, used, held, c.now)
		if err != nil {
			return err
		}
		return firstError(c.putSpent(chain, effects), c.tx.DeleteReservation(r.Run, r.ID), record(c.tx, c.serviceEntry(*r, api.MethodBudgetSettle, used)))
	})
}

// finish lets nobody reserve any more, and returns what was used and what is held.
func (b *Block) finish() (used, held budget.Amounts, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, b.ended = !b.ended, true
	return b.account.Used(), b.account.Reserved(), first
}

// endBlocks ends the blocks of a run that were drawn until a moment; zero: all of them.
func (k *Kernel) endBlocks(run agent.ID, until time.Time) (failed error) {
	k.mu.Lock()
	var blocks []*Block
	for _, b := range k.blocks {
		if b.drawn.Run == run && (until.IsZero() || !b.drawn.Made.After(until)) {
			blocks = append(blocks, b)
		}
	}
	k.mu.Unlock()
	for _, b := range blocks {
		failed = firstError(failed, b.End())
	}
	return failed
}

// Recover settles what services had reserved where none works any more, as far as it matches:
// the process that reserved it is gone.
func (k *Kernel) Recover(matches func(budget.Reservation) bool) error {
	defer k.queue.wake()
	return k.update("sweep", func(tx *store.KernelTx) error {
		open, err := tx.Reservations("")
		for _, r := range open {
			if err != nil {
				return err
			}
			if r.Service != serviceAgent && !k.works(r.ID) && matches(r) {
				err = recoverBlock(tx, r, k.now())
			}
		}
		return err
	})
}

// works reports whether a service of this process works in a block.
func (k *Kernel) works(block string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.blocks[block] != nil
}

func recoverBlock(tx *store.KernelTx, r budget.Reservation, now time.Time) error {
	chain, err := tx.Chain(r.Accounts()...)
	if err != nil {
		return err
	}
	effects, err := chain.Recover(r, now)
	if err != nil {
		return err
	}
	err = firstError(putSpent(tx, chain, now, effects), tx.DeleteReservation(r.Run, r.ID))
	if err != nil || !r.Begun || len(chain) == 0 {
		return err
	}
	// The entry of a call in a spare was to come with its settlement: this one stands for it.
	owner, _ := chain[0].Key.Owner()
	c := &call{Caller: Caller{Run: agent.Run{Spec: agent.Spec{ID: r.Run}, Owner: agent.Owner{UID: owner}}, ID: r.ID}, now: now}
	return record(tx, c.serviceEntry(r, api.MethodBudgetSettle, r.Amounts))
}

// within runs decide in a transaction about a run that no caller began, and reports what
// it changed.
func (k *Kernel) within(run agent.Run, decide func(*call) error) error {
	var c *call
	id := string(agent.NewID())
	err := k.update("block", func(tx *store.KernelTx) error {
		c = &call{Caller: Caller{Run: run, ID: id}, kernel: k, tx: tx, now: k.now()}
		return decide(c)
	})
	if err != nil {
		return err
	}
	k.queue.wake()
	c.decided()
	return firstError(k.publishChange(c), c.refusal)
}
