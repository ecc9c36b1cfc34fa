package control

import (
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/route"
)

// served is a run whose agent may call models.
type served struct {
	run       agent.Run
	groups    []uint32 // of its owner
	listener  *os.File
	line      settleQueue // of calls that wait for what others hold
	contents  *contents   // nil: nothing is logged
	tally     *tally
	learned   learned
	uncounted *rate.Limiter // of calls that are no model_calls

	mu      sync.Mutex     // guards the following
	flying  map[string]int // calls that have reserved and are not paid, by model
	copying int            // copies of contents that are not logged
	waiting int            // calls that wait
}

// Of the calls that are no model_calls a run has as many at once, and then as many in a second:
// no budget bounds what an agent has a provider answer with them.
const (
	maxUncounted       = 60
	uncountedPerSecond = 1
)

func newServed(run agent.Run, listener *os.File) *served {
	return &served{run: run, groups: groups(run.Owner), listener: listener, tally: newTally(), flying: map[string]int{}, uncounted: rate.NewLimiter(uncountedPerSecond, maxUncounted)}
}

// groups are those of an owner, which the account database names; none if it cannot be read:
// then the user alone counts.
func groups(owner agent.Owner) []uint32 {
	all := []uint32{owner.GID}
	account, err := user.LookupId(strconv.FormatUint(uint64(owner.UID), 10))
	if err != nil {
		return all
	}
	ids, _ := account.GroupIds() // those that could be read
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			all = append(all, uint32(n))
		}
	}
	return all
}

// caller is whose a call is: a run's failures keep no others from a target.
func (s *served) caller() route.Caller {
	return route.Caller{Owner: s.run.Owner.UID, Run: string(s.run.Spec.ID)}
}

// fly counts calls that are under way.
func (s *served) fly(model string, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flying[model] += more; s.flying[model] == 0 {
		delete(s.flying, model)
	}
}

// copy counts copies of contents that are not logged.
func (s *served) copy(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copying += more
}

// wait counts calls that wait.
func (s *served) wait(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += more
}

func (s *served) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.flying)+s.copying > 0
}

// settleTime bounds the wait for calls of an agent that has ended: their connections are
// gone, so clove-upstream ends them.
const settleTime = 2 * time.Second

// settlePoll is how often spent looks whether they have.
const settlePoll = 5 * time.Millisecond

// spent returns what the run's calls have used, for its record. Calls that are under way
// come to their end first.
func (s *served) spent() []agent.ModelUse {
	for deadline := time.Now().Add(settleTime); s.busy() && time.Now().Before(deadline); time.Sleep(settlePoll) {
	}
	return s.tally.total()
}

// Activity is what a run has under way.
type Activity struct {
	Run     agent.Run
	Flying  int      // calls in flight
	Waiting int      // calls that wait for a provider, or for what others hold of a budget
	Models  []string // that it has called, sorted
}

func (s *served) activity() Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Activity{Run: s.run, Waiting: s.waiting, Models: slices.Collect(maps.Keys(s.flying))}
	for _, n := range s.flying {
		a.Flying += n
	}
	for _, use := range s.tally.total() {
		a.Models = append(a.Models, use.Model)
	}
	slices.Sort(a.Models)
	a.Models = slices.Compact(a.Models)
	return a
}

// runs are those that are served.
type runs struct {
	mu    sync.Mutex // guards the following
	all   map[agent.ID]*served
	early map[agent.ID]*served // of calls that Find found, and whose supervisor has not come
}

func newRuns() *runs { return &runs{all: map[agent.ID]*served{}, early: map[agent.ID]*served{}} }

// add has a run served, in the place of what served it before.
func (r *runs) add(s *served) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := s.run.Spec.ID
	if before := r.early[id]; before != nil {
		delete(r.early, id)
		s.tally = before.tally // in which calls that were found may still be counted
	}
	r.all[id] = s
}

// remove reports whether the run was served by s: it may have started again.
func (r *runs) remove(s *served) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.all[s.run.Spec.ID] == s
	if current {
		delete(r.all, s.run.Spec.ID)
	}
	return current
}

// get returns what serves a run; nil: nothing does.
func (r *runs) get(id agent.ID) *served {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[id]
}

// of returns the runs of an owner.
func (r *runs) of(uid uint32) (all []*served) {
	for _, s := range r.each() {
		if s.run.Owner.UID == uid {
			all = append(all, s)
		}
	}
	return all
}

func (r *runs) each() (all []*served) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.all {
		all = append(all, s)
	}
	return all
}

// getOr returns what serves a run. A supervisor that has not come yet finds the figures when it
// comes.
func (r *runs) getOr(run agent.Run) *served {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.all[run.Spec.ID]; s != nil {
		return s
	}
	s := r.early[run.Spec.ID]
	if s == nil {
		s = newServed(run, nil)
		if run.State != agent.StateEnded {
			r.early[run.Spec.ID] = s
		}
	}
	return s
}

// spent is what the run's record says of a call.
type spent struct {
	usage     models.Usage
	cost      int64 // in millionths of a dollar
	over      bool  // a try used more than was reserved for it
	estimated bool  // in part, because a provider did not report it
}

func (s *spent) add(u models.Usage, cost int64) {
	s.usage, s.cost = s.usage.Plus(u), budget.Sum(s.cost, cost)
}

// tally is what the calls of a run have used.
type tally struct {
	changed chan struct{} // has a value behind a change, until somebody looks

	mu      sync.Mutex                 // guards the following
	byModel map[string]*agent.ModelUse // by its name
}

func newTally() *tally {
	return &tally{changed: make(chan struct{}, 1), byModel: map[string]*agent.ModelUse{}}
}

// count adds a call.
func (t *tally) count(model string, call spent, failed bool) {
	defer t.tell()
	t.mu.Lock()
	defer t.mu.Unlock()
	use := t.byModel[model]
	if use == nil {
		use = &agent.ModelUse{Model: model}
		t.byModel[model] = use
	}
	u := call.usage
	use.Calls++
	use.TokensIn += u.In + u.CacheWrite // as in the budgets
	use.TokensOut += u.Out
	use.TokensCached += u.Cached
	use.CostMicros += call.cost
	if failed {
		use.Failed++
	}
	if call.over {
		use.Over++
	}
	if call.estimated {
		use.Estimated++
	}
}

func (t *tally) tell() {
	select {
	case t.changed <- struct{}{}:
	default: // nobody has looked since the last change
	}
}

// total returns what was used, sorted by model.
func (t *tally) total() []agent.ModelUse {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []agent.ModelUse
	for _, name := range slices.Sorted(maps.Keys(t.byModel)) {
		all = append(all, *t.byModel[name])
	}
	return all
}
