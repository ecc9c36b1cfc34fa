package daemon

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/internal/watch"
	"clove.run/clove/runtime"
	"clove.run/clove/scheduler"
	"clove.run/clove/store"
)

// parts are what the reconciler needs of the rest of cloved.
type parts struct {
	records   records
	cache     *cache
	sandboxes leftovers
	starter   starter
	tracer    *traces.Tracer
	paths     runtime.Paths
	log       *slog.Logger
	config    func() Config
	socket    func() string // cloved's own
	// admits refuses a run that the configuration forbids by now, or of which a file is another one by now.
	admits func(agent.Run) error
	memory memory // of agents and of the host
	// metered reports whether an account above the run limits what the Linux kernel counts.
	metered func(agent.Run) (bool, error)
}

// leftovers are what the reconciler needs of the runtime.
type leftovers interface {
	Refuse(id agent.ID, cause error) error
	Clean() ([]runtime.Problem, error)
	Supervised(id agent.ID) bool
	hostMemory
}

// reconciler carries out what package scheduler decides. One goroutine compares
// what is stored with what was asked for; each start, and each wait for the end
// of a supervisor, has a goroutine of its own.
type reconciler struct {
	parts
	retry time.Duration // retryTime, and less in tests
	wake  chan struct{} // a look is requested; one element, for all requests since the last look

	seen uint64 // revision of the store when the last look began; of run's goroutine

	// A failure that lasts is one line in the log, and not one for each look.
	looking, cleaning logLimiter

	mu       sync.Mutex // guards all below
	draining bool
	starting map[agent.ID]bool                     // a goroutine of ours is at it; from the decision on
	watched  map[agent.ID]bool                     // a goroutine waits for the supervisor's end
	answers  map[agent.ID][]chan supervisor.Answer // of the callers that wait for a start
	waiting  map[agent.ID]scheduler.Wait           // why queued runs do not start; replaced, never changed
	held     map[agent.ID]scheduler.Hold
	windows  map[agent.ID]*api.SessionSize // of the callers of foreground runs that are about to start

	decided chan struct{} // closed and replaced with each decision
	ended   chan struct{} // closed and replaced after each look, also one that failed
	all     sync.WaitGroup

	// names is held for writing while a run is renamed, and for reading where a
	// name must go on meaning the same run: by a start, whose supervisor will know
	// the run by it, and by what ends or removes the run that a caller named.
	names sync.RWMutex
}

func newReconciler(p parts) *reconciler {
	return &reconciler{parts: p, retry: retryTime, wake: make(chan struct{}, 1), starting: map[agent.ID]bool{}, watched: map[agent.ID]bool{},
		answers: map[agent.ID][]chan supervisor.Answer{}, held: map[agent.ID]scheduler.Hold{}, windows: map[agent.ID]*api.SessionSize{},
		decided: make(chan struct{}), ended: make(chan struct{})}
}

// nudge asks for a look soon. It never waits, so it may be called with any lock held.
func (r *reconciler) nudge() {
	select {
	case r.wake <- struct{}{}:
	default: // one is asked for already
	}
}

// retryTime is between two looks at a store that fails, and between two starts
// of a run whose failure could not be stored.
const retryTime = 2 * time.Second

// run looks whenever something may have changed, until ctx ends. It does not
// wait for supervisors: they outlive it.
func (r *reconciler) run(ctx context.Context, written *watch.Watcher) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		case <-written.Changed:
			if !r.unseen() {
				continue
			}
		}
		r.seen, _ = store.Revision(r.records.path) // the look reports what is wrong with the file
		// One look at a time: events that come meanwhile are one more wake.
		next, err := r.look(ctx)
		r.lookEnded()
		if r.looking.worth(err, time.Now()) {
			r.log.Error("cannot reconcile the runs", "error", err)
		}
		if err != nil {
			// Nothing reports that a store that was full or busy works again.
			next = time.Now().Add(r.retry)
		}
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// unseen reports whether the store was written since the last look began. kernel.db, in the
// same directory, is written with each call of an agent's that changes something: it must not
// cost a look, which goes through all runs.
func (r *reconciler) unseen() bool {
	revision, err := store.Revision(r.records.path)
	return err != nil || revision != r.seen
}

// look is one comparison. next is when the clock asks for another.
func (r *reconciler) look(ctx context.Context) (next time.Time, err error) {
	// Taken before the store is read: a start that ends in between has changed
	// the store, but perhaps not what was read of it. Its nudge brings the next look.
	r.mu.Lock()
	busy := maps.Clone(r.starting)
	r.mu.Unlock()
	onTime, err := r.settle(time.Now().UTC())
	if err != nil {
		return time.Time{}, err
	}
	// Read after the settling, so that what it queued is among them.
	runs := r.cache.current()
	r.watch(ctx, runs)
	available, err := r.memoryFor(runs)
	if err != nil {
		return time.Time{}, err
	}
	return scheduler.Sooner(r.decide(runs, busy, available), onTime), nil
}

// memoryFor is the host's memory for starts. It is read only where a start may depend on it.
func (r *reconciler) memoryFor(runs []agent.Run) (scheduler.Memory, error) {
	isQueued := func(run agent.Run) bool { return run.State == agent.StateQueued }
	if r.config().memoryBytes() == 0 || !slices.ContainsFunc(runs, isQueued) {
		return scheduler.Memory{}, nil
	}
	return r.memory.of(runs)
}

// settle stores what the clock, the stops and the policies mean for the runs by now.
func (r *reconciler) settle(now time.Time) (wake time.Time, err error) {
	if err := r.cache.refresh(); err != nil {
		return wake, err
	}
	for _, run := range r.cache.all(func(run *agent.Run) bool { return scheduler.MayChange(run, now) }) {
		next, err := r.settleRun(run, now)
		// Another request or process was faster: the run is as it left it, and the next
		// look sees it.
		if kind := agent.KindOf(err); err != nil && kind != agent.KindConflict && kind != agent.KindNotFound {
			return wake, err
		}
		wake = scheduler.Sooner(wake, next)
	}
	return wake, r.cache.refresh()
}

// settleRun stores one change after another, as each follows from the one before.
// A run that was changed or removed meanwhile is in conflict, or not found.
func (r *reconciler) settleRun(run agent.Run, now time.Time) (wake time.Time, err error) {
	for {
		change, wake := scheduler.Settle(&run, now)
		switch change.What {
		case "":
			return wake, nil
		case agent.RunEnded:
			return wake, r.dequeue(run.Spec.ID, func(run *agent.Run) bool { return scheduler.Leaves(run, now) })
		case agent.RunRequeued:
			run, err = r.requeue(run.Spec.ID, change.Apply)
		default:
			run, err = r.records.amend(run.Spec.ID, change.What, change.Detail, change.Apply)
		}
		if err != nil {
			return wake, err
		}
		if change.What == agent.RunGivenUp {
			r.log.Warn("a run is given up", "run", run.Spec.Name, "restarts", run.Queue.Restarts)
		}
	}
}

// requeue queues an ended run; change notes why. It is in conflict where the run
// has not ended, or not any more. Its layer stays, if only for clove diff, until
// it is started (Queue.Fresh).
func (r *reconciler) requeue(id agent.ID, change func(*agent.Run)) (agent.Run, error) {
	queued, err := r.records.requeue(id, change)
	// gofail: var againQueued string
	// failpoint(againQueued, "")

	return queued, err
}

// dequeue ends a run without a start, under the name that it has by now, if
// wanted says so of the run as it is stored; else it is in conflict.
func (r *reconciler) dequeue(id agent.ID, wanted func(*agent.Run) bool) error {
	return r.records.change(func(st *store.Store) error {
		run, err := st.Get(string(id))
		if err != nil {
			return err
		}
		if !wanted(&run) {
			return api.Failure(api.CodeConflict, "ask again", "%s is %s meanwhile", run.Spec.Name, run.State)
		}
		if run.Spec.Remove {
			// A start that was put off has made it. It goes before the record: with --rm
			// the run is forgotten with its record, and then only clove gc would find the
			// log.
			if err := r.paths.RemoveLog(run.Spec.ID); err != nil {
				return err
			}
		}
		_, err = st.Finish(run.Spec.ID, agent.EventRecorded, runtime.Dequeued(run, time.Now()), nil)
		return err
	})
}

// decide starts the runs that may start, and keeps why the others wait. busy are
// those that are being started.
func (r *reconciler) decide(runs []agent.Run, busy map[agent.ID]bool, available scheduler.Memory) (wake time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queued := map[agent.ID]bool{}
	for i, run := range runs {
		switch {
		case run.State != agent.StateQueued:
		case busy[run.Spec.ID]: // its supervisor is about to store that
			// It counts as one that starts: it has its reserve of memory, and its place
			// among the starts. The runs are copies, so the cache does not change.
			runs[i].State = agent.StateStarting
		default:
			queued[run.Spec.ID] = true
		}
	}
	// A hold is of one wait in the queue, not of the run.
	maps.DeleteFunc(r.held, func(id agent.ID, _ scheduler.Hold) bool { return !queued[id] })
	config := r.config()
	d := scheduler.Queue{Now: time.Now(), Memory: available, AtOnce: config.startsAtOnce(), Draining: r.draining, Panic: r.cache.panicReason(), Held: r.held}.Decide(runs)
	for _, run := range d.Start {
		// Noted before its goroutine runs: the next look must not start the run a second
		// time.
		r.starting[run.Spec.ID] = true
		r.all.Go(func() { r.begin(r.named(run)) })
	}
	r.waiting = d.Waiting
	close(r.decided)
	r.decided = make(chan struct{})
	return d.Wake
}
