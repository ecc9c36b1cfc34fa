package kernel

import (
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/kernel/service"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// BenchmarkCall is one call of an agent by each of so many callers at once, with the audit
// log: a check, and a reservation that the next call releases. The figure is the time per
// call of all callers together.
func BenchmarkCall(b *testing.B) {
	for _, method := range []string{agents.GrantCheck.Name, agents.BudgetReserve.Name} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", method, callers), func(b *testing.B) {
				k, run := newBenched(b)
				b.ResetTimer()
				var all sync.WaitGroup
				for i := range callers {
					all.Go(func() {
						c := service.Caller{Run: run, Agent: true}
						open := ""
						for done := i; done < b.N; done += callers {
							switch {
							case method == agents.GrantCheck.Name:
								_, err := k.Call(b.Context(), c, service.Request{Method: method, Text: []byte(`{"what":"tool:fetch"}`)})
								must(b, err)
							case open == "":
								text, err := k.Call(b.Context(), c, service.Request{Method: method, Text: []byte(`{"amounts":{"reviews":1}}`)})
								must(b, err)
								open = string(text)
							default:
								_, err := k.Call(b.Context(), c, service.Request{Method: agents.BudgetRelease.Name, Text: []byte(open)})
								must(b, err)
								open = ""
							}
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// newBenched opens a Kernel with one run.
func newBenched(b *testing.B) (*Kernel, agent.Run) {
	b.Helper()
	dir := b.TempDir()
	file, err := store.OpenKernel(filepath.Join(dir, "kernel.db"), patience, Tables()...)
	must(b, err)
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.RunOptions())
	must(b, err)
	k, err := New(Config{Store: file, Log: log})
	must(b, err)
	b.Cleanup(func() { must(b, k.Close()); must(b, log.Close()); must(b, file.Close()) })
	run := newRun(1000, agent.Kernel{Budgets: []string{"reviews=1000000g"}, Grants: []string{"tool:fetch"}})
	must(b, k.Attach(b.Context(), run, true, func(api.Standing) {}))
	return k, run
}

// BenchmarkSpending is a call of a service: how long it waits before it may begin, the median in
// p50-ns/begin, and what the whole call takes, ns/op. With a spare, the settlement of the last call has drawn
// what it needs.
func BenchmarkSpending(b *testing.B) {
	one := budget.Amounts{budget.ModelCalls: 1, budget.TokensIn: 100, budget.TokensOut: 100}
	for name, ahead := range map[string]budget.Amounts{"disk": nil, "spare": one} {
		b.Run(name, func(b *testing.B) {
			k, run := newBenched(b)
			began := make([]time.Duration, 0, b.N)
			for range b.N {
				at := time.Now()
				id, err := k.Ledger.Reserve(run, ledger.Spending{Service: "model", Method: "model.call", What: "tool:fetch", Fit: exactly(one)})
				began = append(began, time.Since(at))
				must(b, err)
				must(b, k.Ledger.Settle(run, ledger.Settlement{Service: "model", Reservation: id, Used: one, Ahead: ahead}))
			}
			slices.Sort(began)
			b.ReportMetric(float64(began[len(began)/2].Nanoseconds()), "p50-ns/begin")
		})
	}
}
