package store

import (
	"fmt"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// BenchmarkKernelUpdate is one durable change by each of so many callers at once: a
// reservation that is settled by the next change, with an answer and an audit entry. The
// figure is the time per change of all callers together.
func BenchmarkKernelUpdate(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			k := openKernelNew(b)
			spenders := make([]*spender, callers)
			for i := range spenders {
				spenders[i] = newSpender(b, k, uint32(i%8), budget.MaxAmount)
				spenders[i].noted()
			}
			b.ResetTimer()
			var all sync.WaitGroup
			for i, s := range spenders {
				all.Go(func() {
					for done := i; done < b.N; done += callers {
						if err := s.turn(); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// noted gives each change an answer and an audit entry of a usual size.
func (s *spender) noted() {
	entry := make([]byte, 300)
	changes := 0
	s.note = func(tx *KernelTx, _ string) error {
		changes++
		_, err := AuditQueue.Add(tx, entry)
		return firstOf(err, Answers.Put(tx, s.run, fmt.Sprint(changes), entry[:100]))
	}
}

// turn reserves, or settles what is reserved.
func (s *spender) turn() error {
	if len(s.open) > 0 {
		return s.settle(1)
	}
	_, err := s.reserve(1)
	return err
}

// BenchmarkKernelRows is the time to read the chain of a run beside those of others.
func BenchmarkKernelRows(b *testing.B) {
	for _, others := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			k := openKernelNew(b)
			s := newSpender(b, k, 7, budget.MaxAmount)
			must(b, s.charge(1))
			must(b, k.Update(func(tx *KernelTx) (err error) {
				for i := range others {
					run := agent.NewID()
					err = firstOf(err, putUse(tx, budget.RunKey(uint32(i%10), run), 1), Grants.Put(tx, newGrant(string(run), string(run), "", 0)))
				}
				return err
			}))
			b.ResetTimer()
			for range b.N {
				must(b, k.Read(func(tx *KernelTx) error {
					_, err := s.chain(tx)
					_, err2 := Grants.HeldBy(tx, string(s.run))
					_, err3 := Reservations.Below(tx, RunKey(s.run, ""))
					return firstOf(err, err2, err3)
				}))
			}
		})
	}
}
