package ledger

import (
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Grants answers which grant covers what is done for an agent.
type Grants interface {
	Cover(c *service.Call, what string) (rule string, err error)
	Use(c *service.Call, rule string) error
	// Counted reports whether the uses of a grant are counted: then each is durable.
	Counted(c *service.Call, rule string) bool
}

// Accounts are those that runs spend from.
type Accounts interface {
	Chain(tx *store.KernelTx, run agent.Run) (budget.Chain, error)
	// Spent stores a chain with what was spent from it.
	Spent(c *service.Call, chain budget.Chain, out *service.Outcome, effects ...budget.Effects) error
	// Exceeded refuses what does not fit.
	Exceeded(c *service.Call, chain budget.Chain, err error, out *service.Outcome) error
	// Recover settles a reservation whose service is gone.
	Recover(tx *store.KernelTx, r budget.Reservation, now time.Time) (budget.Chain, error)
}

// Ledger is what services of clove's spend through. Its methods may be called from many goroutines.
type Ledger struct {
	engine   *service.Engine
	grants   Grants
	accounts Accounts
	changes  changes
	spares   spares
	// SpareTime is how long a spare waits for a call.
	SpareTime time.Duration
}

// New makes a ledger. Serve gives it its engine.
func New(g Grants, a Accounts) *Ledger {
	return &Ledger{grants: g, accounts: a, SpareTime: spareTime, spares: spares{runs: map[agent.ID][]*spare{}, taken: map[string]audit.Entry{}}}
}

// Serve has the ledger work with an engine.
func (l *Ledger) Serve(e *service.Engine) { l.engine = e }

// callEventEvery bounds the events of calls, which agents make all the time.
const callEventEvery = 30 * time.Second

// Service returns the method about calls of models that wait for their turn. waiting returns those
// of a run; nil: no models are served.
func (l *Ledger) Service(waiting func(run agent.ID) []api.WaitingCall) *service.Service {
	return service.New("model").On(service.Read(agents.ModelQueue, service.Stages[api.RunParams]{},
		func(c *service.Call, _ api.RunParams) (answer api.ModelQueueResult, out service.Outcome, err error) {
			answer.Calls = []api.WaitingCall{}
			if waiting != nil {
				answer.Calls = append(answer.Calls, waiting(c.Run.Spec.ID)...)
			}
			return answer, out, nil
		}))
}

// Called notes a call by a run's agent that has ended: what is RunModelCalled or RunToolCalled. call is
// its id, as its audit records have it; detail is for people.
func (l *Ledger) Called(run agent.ID, what agent.RunEventKind, call, detail string) {
	l.engine.Note(run, what, call, detail, callEventEvery)
}

// EndSpares gives the spares of a run back.
func (l *Ledger) EndSpares(run agent.ID) error {
	_, err := l.endSpares(ofRun(run))
	return err
}

// Unused reports whether a reservation of a run was made ahead and is not in use. It is in no use
// from then on.
func (l *Ledger) Unused(run agent.ID, reservation string) bool {
	return l.spares.endOne(run, reservation)
}

// Close gives spares back.
func (l *Ledger) Close() error {
	l.spares.close()
	_, err := l.endSpares(func(*spare) bool { return true })
	return err
}

// Changed returns a channel that is closed with the next change of any account. A caller that waits
// for more to be left takes it before it looks.
func (l *Ledger) Changed() <-chan struct{} { return l.changes.next() }

// Happened reports a commit, for Changed.
func (l *Ledger) Happened() { l.changes.happened() }

// changes lets any number of goroutines wait for the next change. The zero value is ready.
type changes struct {
	mu      sync.Mutex    // guards the following
	waiting chan struct{} // nil: none waits
}

func (c *changes) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(chan struct{})
	}
	return c.waiting
}

func (c *changes) happened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting != nil {
		close(c.waiting)
		c.waiting = nil
	}
}
