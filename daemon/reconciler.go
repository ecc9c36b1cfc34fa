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
	"clove.run/clove/internal/watch"
	"clove.run/clove/store"
)

// reconciler makes what is what was asked for: one goroutine looks, others wait
// for supervisors.
type reconciler struct {
	*Daemon
	log   *slog.Logger
	retry time.Duration // retryTime, and less in tests
	wake  chan struct{} // somebody wants a look

	// What was complained of last, so that a failure that lasts is one line in
	// the log and not one for each look.
	looking, cleaning logLimiter

	mu       sync.Mutex // guards all below
	draining bool
	starting map[agent.ID]bool                     // a goroutine of ours is at it
	watched  map[agent.ID]bool                     // a goroutine waits for the supervisor's end
	verdicts map[agent.ID][]chan supervisor.Answer // who asked for a start wants to know
	reasons  map[agent.ID]string                   // why those that wait do
	soon     map[agent.ID]bool                     // those of reasons that pass by themselves in a moment
	waiting  map[string]int                        // how many wait for what; replaced, never changed
	held     map[agent.ID]postponed
	windows  map[agent.ID]*api.SessionSize // of the callers of foreground runs that are about to start

	looked chan struct{} // closed and replaced with each decision
	turned chan struct{} // closed and replaced after each look, also one that failed
	all    sync.WaitGroup

	// names is held for writing while a run is renamed, and for reading by who
	// relies on a name: a start, whose supervisor will know the run by it, and
	// what ends or removes the run that somebody called so.
	names sync.RWMutex
}

func newReconciler(d *Daemon) *reconciler {
	return &reconciler{Daemon: d, log: d.log, retry: retryTime, wake: make(chan struct{}, 1), starting: map[agent.ID]bool{}, watched: map[agent.ID]bool{},
		verdicts: map[agent.ID][]chan supervisor.Answer{}, reasons: map[agent.ID]string{}, held: map[agent.ID]postponed{}, windows: map[agent.ID]*api.SessionSize{}, looked: make(chan struct{}), turned: make(chan struct{})}
}

// nudge asks for a look soon.
func (k *reconciler) nudge() {
	select {
	case k.wake <- struct{}{}:
	default: // one is asked for already
	}
}

// run looks whenever something may have changed, until ctx ends. It does not
// wait for supervisors: they outlive it.
func (k *reconciler) run(ctx context.Context, written *watch.Watcher) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		case <-written.Changed:
		}
		next, err := k.look(ctx)
		k.turn()
		if k.looking.worth(err, time.Now()) {
			k.log.Error("cannot look after the runs", "error", err)
		}
		if err != nil {
			// A store that is full or busy is looked at again: nothing else
			// would tell when it works.
			next = time.Now().Add(k.retry)
		}
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// retryTime is between two looks at a store that fails.
const retryTime = 2 * time.Second

// look is one comparison.
func (k *reconciler) look(ctx context.Context) (next time.Time, err error) {
	// Taken before the store is read: a start that ends in between has changed
	// the store, but perhaps not what was read of it. Its nudge brings the next look.
	k.mu.Lock()
	busy := maps.Clone(k.starting)
	k.mu.Unlock()
	onTime, err := k.settle()
	if err != nil {
		return time.Time{}, err
	}
	runs := k.cache.current()
	k.watch(ctx, runs)
	k.mu.Lock()
	defer k.mu.Unlock()
	config := k.config()
	for i, run := range runs {
		// Its supervisor is on its way to note that: its place is taken.
		if run.State == agent.StateQueued && busy[run.Spec.ID] {
			runs[i].State = agent.StateStarting
		}
	}
	now := time.Now()
	k.holdBack(runs, now)
	d := turns{now: now, memoryBytes: config.memoryBytes(), atOnce: config.startsAtOnce(), draining: k.draining}.decide(runs)
	for _, run := range d.start {
		k.starting[run.Spec.ID] = true
		k.all.Go(func() { k.begin(k.named(run)) })
	}
	k.explainHeld(d.reasons)
	k.reasons, k.soon, k.waiting = d.reasons, d.soon, d.waiting
	close(k.looked)
	k.looked = make(chan struct{})
	return sooner(d.wake, onTime), nil
}

// settle writes what the clock, the wishes and the policies mean for the runs
// by now. Each step reads what the one before it changed. wake is when the
// clock means something next.
func (k *reconciler) settle() (wake time.Time, err error) {
	steps := []func() error{
		func() error { return k.redate(time.Now().UTC()) },
		// What was stopped has no time to come.
		k.layDown,
		// Times that came while a run was busy are settled before its end is judged.
		func() (err error) { wake, err = k.keepTime(time.Now()); return err },
		k.restart,
	}
	for _, step := range steps {
		if err := k.cache.refresh(); err != nil {
			return wake, err
		}
		if err := step(); err != nil {
			return wake, err
		}
	}
	return wake, k.cache.refresh()
}

// layDown ends what waits although its end was asked for. cloved died between
// the wish and the deed, or a policy had judged the run the moment before.
func (k *reconciler) layDown() error {
	marked := func(run *agent.Run) bool { return run.Phase() == agent.PhaseLeaving }
	for _, run := range k.cache.all(marked) {
		err := k.dequeue(run.Spec.ID, marked)
		if err != nil && agent.KindOf(err) != agent.KindConflict && agent.KindOf(err) != agent.KindNotFound {
			return err
		}
	}
	return nil
}

// begin starts one run and tells who asked for it.
func (k *reconciler) begin(run agent.Run) {
	began := time.Now()
	// gofail: var beginTurn string
	// failpoint(beginTurn, "")

	var answer supervisor.Answer
	var gone <-chan struct{}
	// The configuration may be another than when it was asked for.
	err := k.checkReach(run.Spec, run.Owner)
	if err == nil {
		answer, gone, err = k.starter.start(supervisor.Order{Spec: run.Spec, Owner: run.Owner, Size: k.window(run.Spec.ID),
			LogDir: k.logDir(run.Spec.ID), LogCapBytes: k.config().LogCapBytes()})
	}
	if err != nil {
		answer = startFailed(err)
		if rerr := k.sandboxes.Refuse(run.Spec.ID, err); k.looking.worth(rerr, time.Now()) {
			k.log.Error("a run that was not started has no record", "run", run.Spec.Name, "error", rerr)
		}
	}
	k.tracer.Started(run, began, answer.Steps, failedStep(answer))
	waits := false
	if answer.Started {
		k.log.Info("started", "run", run.Spec.Name, "id", run.Spec.ID, "took", time.Since(began))
	} else {
		k.log.Warn("cannot start", "run", run.Spec.Name, "id", run.Spec.ID, "error", answer.Error)
		k.awaitEnd(gone)
		k.forgetLog(run.Spec.ID)
		waits = k.postpone(run.Spec.ID, answer.Error)
	}
	k.mu.Lock()
	delete(k.starting, run.Spec.ID)
	if !waits {
		for _, tell := range k.verdicts[run.Spec.ID] {
			tell <- answer // it has room for one
		}
		delete(k.verdicts, run.Spec.ID)
	}
	k.mu.Unlock()
	k.nudge()
}

// forgetLog removes what a start made of the log of a run that was removed
// before its turn came.
func (k *reconciler) forgetLog(id agent.ID) {
	if k.cache.refresh() != nil {
		return // gc finds it
	}
	if _, found := k.cache.get(id); !found {
		if err := k.options.Paths.RemoveLog(id); err != nil {
			k.log.Warn("a log is left", "id", id, "error", err)
		}
	}
}

// named is a run that will start, with the name that it keeps. What else
// happened to it since it was decided upon, the store tells its supervisor.
func (k *reconciler) named(run agent.Run) agent.Run {
	k.names.RLock()
	defer k.names.RUnlock()
	if k.cache.refresh() == nil {
		if now, found := k.cache.get(run.Spec.ID); found {
			return now
		}
	}
	return run
}

// at tells whether the run is being started.
func (k *reconciler) at(id agent.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.starting[id]
}

// awaitStart waits until no start of the run goes on, or ctx ends.
func (k *reconciler) awaitStart(ctx context.Context, id agent.ID) {
	for {
		k.mu.Lock()
		goesOn, turned := k.starting[id], k.turned
		k.mu.Unlock()
		if !goesOn {
			return
		}
		select {
		case <-turned: // the end of a start brings a look
		case <-ctx.Done():
			return
		}
	}
}

// awaitEnd waits until what a supervisor did to the store is done. One whose
// answer was not heard may live as long as its agent: the store tells of it.
func (k *reconciler) awaitEnd(gone <-chan struct{}) {
	if gone == nil {
		return
	}
	select {
	case <-gone:
	case <-time.After(k.retry):
	}
}

// expect returns the channel on which the answer to a start will come.
// Anybody may name any id: who comes second must not take the first one's answer.
func (k *reconciler) expect(id agent.ID) chan supervisor.Answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	answer := make(chan supervisor.Answer, 1)
	k.verdicts[id] = append(k.verdicts[id], answer)
	return answer
}

// seat has the start of a foreground run know its caller's window, until release.
func (k *reconciler) seat(id agent.ID, size *api.SessionSize) (release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.windows[id] = size
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.windows, id)
	}
}

func (k *reconciler) window(id agent.ID) *api.SessionSize {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.windows[id]
}

// forget takes back expect, for who does not wait any longer: the channel of a
// caller that has gone would be kept as long as its run waits.
func (k *reconciler) forget(id agent.ID, answer chan supervisor.Answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := slices.DeleteFunc(k.verdicts[id], func(a chan supervisor.Answer) bool { return a == answer })
	if k.verdicts[id] = left; len(left) == 0 {
		delete(k.verdicts, id)
	}
}

// reason says why a run waits, and returns what will be closed when that may
// have changed.
func (k *reconciler) reason(id agent.ID) (string, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reasons[id], k.looked
}

// obstacle is reason for who asked for a start: a place among the starts is free
// in a moment, so that is no reason to answer that the run waits.
func (k *reconciler) obstacle(id agent.ID) (string, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.soon[id] {
		return "", k.looked
	}
	return k.reasons[id], k.looked
}

// drain holds starts back, or lets them go on. A later cloved keeps to it.
func (k *reconciler) drain(on bool) error {
	if err := k.records.change(func(s *store.Store) error { return s.SetDrained(on) }); err != nil {
		return err
	}
	k.mu.Lock()
	k.draining = on
	k.mu.Unlock()
	k.nudge()
	return nil
}

// recall reads whether an earlier cloved was drained.
func (k *reconciler) recall() error {
	return k.records.with(func(s *store.Store) (err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.draining, err = s.Drained()
		return err
	})
}

// drained tells whether starts are held back, by this cloved or one before it.
func (k *reconciler) drained() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.draining
}
