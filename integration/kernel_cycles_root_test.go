//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/internal/linear"
	"clove.run/clove/internal/testhost"
)

const (
	callingAgents = 8
	callersEach   = 8
	// callSteps are the calls of one caller in a round. With more of them the search for an
	// order takes longer than the round.
	callSteps = 26
	// callGranted is so little that every round has reservations that do not fit.
	callGranted = 60
	// killsInRound is how often cloved is killed in one round: the checks after the calls
	// take as long as a few kills.
	killsInRound = 4
)

// calling is a cloved that is killed while 64 callers in eight sandboxes use it.
type calling struct {
	*cloved
	random *rand.Rand
	agents []*running
	names  []string
	born   time.Time // of the agents, which must end within patience

	used     int64          // by all runs, as the callers know it
	sure     int64          // of used, what the account above counts in full
	methods  map[string]int // acknowledged calls
	repeated int            // of these, after cloved was away
	refused  int
}

// TestKernelCycles kills cloved at random moments beside 64 callers, each on its own
// connection to the socket of a real sandbox. A call that is answered with busy is repeated
// with its key, some also when they were answered. After each round, of four kills, one order
// must explain all answers about budgets, grants, mail, keys, names and jobs, and what acknowledgements of mail
// and completions of jobs carried is done once. The budgets must be the sum of what was acknowledged, and nothing
// may exceed them.
// At the end the audit log has each acknowledged change once. CLOVE_CYCLES sets the number of
// kills, CLOVE_SEED repeats the order of the calls.
func TestKernelCycles(t *testing.T) {
	cycles := numberOf(t, "CLOVE_CYCLES", testhost.Sample(2000, 10, 3))
	seed := numberOf(t, "CLOVE_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("%d cycles, CLOVE_SEED=%d", cycles, seed)
	s := &calling{cloved: newCloved(t), random: rand.New(rand.NewPCG(uint64(seed), 14)), methods: map[string]int{}}
	s.api(methods.BudgetSet.Name, map[string]any{"account": "0", "limits": []string{"n=1000000000000"}}, nil)
	began := time.Now()
	rounds := (cycles + killsInRound - 1) / killsInRound
	for i := range rounds {
		if s.agents == nil {
			s.begin(i)
		}
		s.round(i, seed, min(killsInRound, cycles-i*killsInRound))
		if t.Failed() {
			t.Fatalf("round %d of CLOVE_SEED=%d", i, seed)
		}
		if time.Since(s.born) > patience()/4 || i == rounds-1 {
			s.end()
		}
	}
	s.everyChangeIsInTheLog()
	t.Logf("%d kills of cloved in %v: %v acknowledged, %d refused, %d repeated because cloved was away, nothing lost",
		cycles, time.Since(began).Round(time.Second), s.methods, s.refused, s.repeated)
	if s.repeated < cycles || s.refused < cycles {
		t.Errorf("control: %d repetitions, %d refusals in %d cycles: the moments are wrong", s.repeated, s.refused, cycles)
	}
}

// begin starts the agents.
func (s *calling) begin(life int) {
	s.t.Helper()
	s.names, s.born = nil, time.Now()
	for i := range callingAgents {
		s.names = append(s.names, fmt.Sprintf("calling-%d-%d", life, i))
	}
	for i, name := range s.names {
		r := s.start(self("--name="+name, "--network=none", "--grant=tool:fetch", "--grant=send:calling-*", "--grant=name:shared-*", "--grant=send:job/*", "--grant=name:job/*", "--grant=state:/namespace:rw", fmt.Sprintf("--budget=n=%d", callGranted), "--at-end=refuse"),
			append([]string{agentInside, agentWord, "rounds", fmt.Sprint(i), fmt.Sprint(callersEach), fmt.Sprint(callSteps), fmt.Sprint(callGranted), name}, s.names...)...)
		if line := r.line(); line != "up" {
			s.t.Fatalf("%q\n%s", line, &r.stderr)
		}
		s.agents = append(s.agents, r)
	}
}

// end ends the agents, and looks at what is left.
func (s *calling) end() {
	s.t.Helper()
	s.holdLast()
	for _, r := range s.agents {
		r.stdin.Close()
	}
	s.stop(unix.SIGKILL) // while they end
	s.serve()
	for _, r := range s.agents {
		if end := r.wait(); end.code != 0 {
			s.t.Errorf("exit %d\n%s", end.code, end.stderr)
		}
	}
	s.agents = nil
	s.lastComeBack()
	for _, args := range [][]string{{"check"}, {"audit", "verify"}} {
		if r := s.clove(args...); r.code != 0 {
			s.t.Errorf("%v: %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// longestUp is the longest time that cloved lives: a round's calls take a few times as long.
func longestUp() time.Duration { return testhost.Patience(80 * time.Millisecond) }

// round has all callers make their calls, and kills cloved meanwhile.
func (s *calling) round(i, seed, kills int) {
	s.t.Helper()
	s.queue(fmt.Sprintf("c%d", i))
	for _, r := range s.agents {
		fmt.Fprintln(r.stdin, fmt.Sprintf("c%d", i), seed+i)
	}
	for range kills {
		<-time.After(time.Duration(s.random.Int64N(int64(longestUp()))))
		s.stop(unix.SIGKILL)
		s.serve()
	}
	var budgets, grants, boxes, keys, names, jobs []porcupine.Operation
	for _, r := range s.agents {
		for {
			line := r.line()
			if line == "done" {
				break
			}
			var made madeCall
			if err := json.Unmarshal([]byte(line), &made); err != nil {
				s.t.Fatalf("%q: %v\n%s", line, err, &r.stderr)
			}
			s.count(made)
			o := porcupine.Operation{ClientId: made.Caller, Call: made.Call, Return: made.Return}
			switch {
			case made.Budget != nil:
				o.Input, o.Output = *made.Budget, made.BudgetSaid
				budgets = append(budgets, o)
			case made.Box != nil:
				o.Input, o.Output = *made.Box, made.BoxSaid
				boxes = append(boxes, o)
			case made.Key != nil:
				o.Input, o.Output = *made.Key, made.KeySaid
				keys = append(keys, o)
			case made.Name != nil:
				o.Input, o.Output = *made.Name, made.NameSaid
				names = append(names, o)
			case made.Job != nil:
				o.Input, o.Output = *made.Job, made.JobSaid
				jobs = append(jobs, o)
			case made.Grant != nil:
				o.Input, o.Output = *made.Grant, made.GrantAnswer
				grants = append(grants, o)
			}
		}
	}
	jobs = s.afterJobs(fmt.Sprintf("c%d", i), jobs)
	shown, held := s.after()
	for _, err := range []error{linear.CheckBudgets(append(budgets, shown...), patience()), linear.CheckGrants(append(grants, held...), patience()),
		linear.CheckBoxes(boxes, patience()), linear.CheckKeys(keys, patience()), linear.CheckNames(names, patience()), linear.CheckJobs(jobs, patience())} {
		if err != nil {
			s.t.Error(err)
		}
	}
	for n := range keysInRound {
		s.api(methods.StateRemove.Name, map[string]any{"path": keyOf(i, n)}, nil)
	}
}

// count adds up what was acknowledged.
func (s *calling) count(made madeCall) {
	if made.refused() {
		s.refused++
		return
	}
	s.used += made.Amount
	s.sure += made.Sure
	s.methods[made.Method]++
	if made.Repeated > 0 {
		s.repeated++
	}
}

// after asks cloved what there is when no call is in flight, as the last operations of the
// histories, and has the next round begin with nothing.
func (s *calling) after() (budgets, grants []porcupine.Operation) {
	s.t.Helper()
	for i, name := range s.names {
		params := map[string]any{"run": name}
		o := porcupine.Operation{ClientId: callingAgents * callersEach, Call: monotonic()}
		var has api.BudgetResult
		var list api.GrantListResult
		s.api(agents.BudgetGet.Name, params, &has)
		s.api(agents.GrantList.Name, params, &list)
		o.Return = monotonic()
		o.Input, o.Output = linear.BudgetInput{Op: linear.BudgetShow, Account: i, Granted: callGranted}, linear.BudgetOutput{Used: ofN(has.Budgets).Used, Reserved: ofN(has.Budgets).Reserved}
		budgets = append(budgets, o)
		shown := linear.GrantOutput{}
		for _, g := range list.Grants {
			if g.Parent != "" {
				shown.IDs = append(shown.IDs, g.ID)
			}
		}
		o.Input, o.Output = linear.GrantInput{Op: linear.GrantShow, Holder: i}, shown
		grants = append(grants, o)
		s.reset(name, list.Grants)
	}
	var all api.BudgetListResult
	s.api(methods.BudgetList.Name, map[string]any{"account": "0"}, &all)
	if own := ofN(all.Budgets); own.Account != "0" || own.Used < s.sure || own.Used > s.used || own.Reserved != 0 {
		s.t.Errorf("%+v, the callers have used %d, of which %d were reserved", own, s.used, s.sure)
	}
	return budgets, grants
}

// reset frees a run's budget, and revokes what its agent has derived.
func (s *calling) reset(name string, grants []api.Grant) {
	s.t.Helper()
	s.api(methods.BudgetReset.Name, map[string]any{"run": name, "dimensions": []string{"n"}}, nil)
	first := ""
	for _, g := range grants {
		if g.Parent == "" && g.Grant == "tool:fetch" {
			first = g.ID
		}
	}
	for _, g := range grants {
		if g.Parent == first {
			s.api(agents.GrantRevoke.Name, map[string]any{"run": name, "id": g.ID}, nil)
		}
	}
}

// everyChangeIsInTheLog holds the audit log against what was acknowledged to agents.
func (s *calling) everyChangeIsInTheLog() {
	s.t.Helper()
	s.stop(unix.SIGTERM) // the queue is moved
	found := map[string]int{}
	if err := audit.Query(audit.Dir(s.state), audit.Filter{}, func(e audit.Entry) error {
		if e.Kind == audit.KindDecision && e.Verdict == audit.VerdictAllow {
			found[e.Method]++
		}
		return nil
	}); err != nil {
		s.t.Error(filepath.Base(s.state), err)
	}
	for _, method := range []string{agents.BudgetReserve.Name, agents.BudgetSettle.Name, agents.BudgetCharge.Name, agents.GrantDerive.Name, agents.GrantRevoke.Name,
		agents.MailSend.Name, agents.MailAck.Name, agents.StateSet.Name, agents.StateDelete.Name, agents.NameRegister.Name, agents.NameRelease.Name,
		agents.JobAdd.Name, agents.JobClaim.Name, agents.JobRenew.Name, agents.JobFail.Name, agents.JobComplete.Name} {
		if found[method] != s.methods[method] || found[method] == 0 {
			s.t.Errorf("%s: %d are in the log, %d were acknowledged", method, found[method], s.methods[method])
		}
	}
	s.serve()
}
