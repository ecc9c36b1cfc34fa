package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/internal/watch"
	"clove.run/clove/runtime"
)

// Options are what a Daemon is made of.
type Options struct {
	// Paths are the state and the run directory, absolute. The caller holds the Lock of the
	// first.
	Paths      runtime.Paths
	ConfigFile string // empty: the defaults
	Config     Config // what was read from it
	Sandboxes  sandboxes
	Version    string
	Log        *slog.Logger
	Clove      string // path of the clove program
	// Reloaded is called with each new configuration.
	Reloaded func(Config)
	Scrapes  Scrapes
	LogTail  *Tail          // the last of what Log wrote; nil: unknown
	Tracer   *traces.Tracer // nil: nothing is traced
}

// Daemon is one cloved.
type Daemon struct {
	options    Options
	log        *slog.Logger
	started    time.Time
	records    records
	cache      *cache
	shared     *shared    // while it serves
	inference  *inference // while it serves
	reconciler *reconciler
	guards     guards
	sandboxes  sandboxes
	current    atomic.Pointer[Config] // a reload replaces it while requests read it
	readers    *slots                 // of layers
	looks      *slots                 // with the rights of callers
	audits     *slots                 // queries of the audit log
	streams    *slots                 // requests that notify until they are cancelled
	owed       *slots                 // bytes of requests and answers that are held
	makes      *slots                 // requests in progress, which takes several times their length
	rootMakes  *slots                 // the same of root, which must not wait for users
	watches    watch.Source
	dropping   logLimiter // of the goroutine that removes what has no record
	admission  sync.Mutex // from counting a user's runs until the next one is stored

	meter       *metrics.Meter
	tracer      *traces.Tracer
	connections atomic.Int64             // to the API, open
	lives       map[agent.ID]traces.Life // the goroutine of follow alone
	namespaces  map[agent.ID]string      // the same; of runs that have one
	socket      atomic.Pointer[string]   // where it listens, once it does
}

// New makes a cloved that does nothing yet.
func New(o Options) *Daemon {
	d := &Daemon{options: o, log: o.Log, started: time.Now().UTC(), sandboxes: o.Sandboxes,
		tracer: o.Tracer, lives: map[agent.ID]traces.Life{}, namespaces: map[agent.ID]string{}}
	supervisors := processes{program: o.Clove, state: o.Paths.State, run: o.Paths.Run, cgroup: runtime.SupervisorCgroup}
	d.guards = supervisors
	d.current.Store(&o.Config)
	// How many in all, then for each user; 0: no bound. Those in all make a caller wait,
	// those of a user refuse.
	d.readers = newSlots("layer reads", 4, 2)
	// No bound in all: a file system that hangs for one user must not use up the places of
	// others.
	d.looks = newSlots("workspace checks", 0, 4)
	d.audits = newSlots("audit log queries", 2, 1)
	d.streams = newSlots("streams", 0, 64)
	d.makes = newSlots("requests in progress", 4, 0)
	d.rootMakes = newSlots("requests in progress", 4, 0)
	d.owed = newSlots("bytes of requests and unread answers", 0, maxOwed)
	d.owed.root, d.owed.members = maxOwedRoot, maxOwedRest
	// The gauges are asked for at a scrape, when the fields below are set.
	d.meter = metrics.New(o.Version, d.gauges)
	d.records = records{filepath.Join(o.Paths.State, "clove.db"), d.meter}
	d.cache = newCache(d.records)
	d.reconciler = newReconciler(parts{records: d.records, cache: d.cache, sandboxes: o.Sandboxes, starter: supervisors, tracer: o.Tracer,
		paths: o.Paths, log: o.Log, config: d.config, memory: d.memory(), socket: func() string { return *d.socket.Load() }, admits: func(run agent.Run) error {
			if err := d.config().checkCeiling(run.Spec); err != nil {
				return err
			}
			if err := d.config().Users.checkReach(run.Spec, principal{owner: run.Owner}); err != nil {
				return err
			}
			return d.limits().unchanged(ownedBy(context.Background(), run.Owner), run.Executes)
		}, metered: func(run agent.Run) (bool, error) { return d.shared.kernel.Metered(run) }})
	return d
}

// config is the configuration that holds now.
func (d *Daemon) config() Config { return *d.current.Load() }

// drainTime is how long requests that are being answered get at the end. clove.service
// gives cloved 30 s in all (TimeoutStopSec) before systemd kills it.
const drainTime = 10 * time.Second

// Serve answers on the listener and keeps the agents until ctx ends; then it
// lets what is being answered come to its end. ready is called when it serves.
// The agents go on without it.
func (d *Daemon) Serve(ctx context.Context, listener *net.UnixListener, group int, ready func()) (err error) {
	d.socket.Store(new(listener.Addr().String()))
	if d.shared, err = d.openKernel(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.shared.close()) }()
	if err := d.cache.refresh(); err != nil {
		return err
	}
	// Before the reconciler runs: a drained cloved must not start anything first.
	if err := d.reconciler.recall(); err != nil {
		return err
	}
	d.reconciler.cleanFirst()
	serving, left := context.WithCancel(context.Background())
	defer left()
	if err := d.openModels(serving); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.inference.close()) }()
	d.shared.recover(d.log, d.inference.flies)
	d.shared.files.recover(d.shared.kernel.ChildWaits)
	go d.inference.recover(serving)
	if err := d.inference.accept(serving); err != nil {
		return err
	}
	defer d.watches.Close()
	// Before anything is served: a change that comes after the first look is noticed.
	written, err := d.watches.Dir(d.options.Paths.State)
	if err != nil {
		return err
	}
	defer written.Close()
	// Not ctx: the reconciler goes on while requests come to their end, some of which wait
	// for a start.
	keeping, stop := context.WithCancel(context.Background())
	var kept sync.WaitGroup
	// Taken before the reconciler runs, so that follow counts what its first look does.
	last := d.cache.newest()
	kept.Go(func() { d.reconciler.run(keeping, written) })
	kept.Go(func() { d.follow(keeping, last) })
	kept.Go(func() { d.scrape(keeping, d.options.Scrapes, group) })
	kept.Go(func() { d.reconciler.watchClock(keeping, d.clockSet) })
	kept.Go(func() { d.shared.notes.run(keeping) })
	kept.Go(func() { d.keepAudit(keeping) })
	server := newServer(d, group)
	failed := make(chan error, 1)
	go func() { failed <- server.accept(listener) }()
	ready()
	select {
	case <-ctx.Done():
		listener.Close()
		err = <-failed // nothing is accepted any more
	case err = <-failed:
		listener.Close()
	}
	patience, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	server.drain(patience)
	stop()
	kept.Wait()
	// Starts and a cleaning that have begun come to their end.
	d.reconciler.all.Wait()
	return errors.Join(err)
}

// clockSet has everything that depends on the wall clock decided again.
func (d *Daemon) clockSet() {
	d.reconciler.nudge()
	if err := d.shared.kernel.ClockSet(); err != nil {
		d.log.Error("grants and budgets do not follow the clock", "error", err)
	}
}

// Reload reads the configuration again; a mistake changes nothing. A higher bound may let
// queued runs start, so the reconciler looks.
func (d *Daemon) Reload() error {
	config, err := LoadConfig(d.options.ConfigFile)
	if err != nil {
		return err
	}
	if m := d.inference; m != nil {
		if err := m.reload(config.Models); err != nil {
			return err
		}
	}
	d.current.Store(&config)
	if d.options.Reloaded != nil {
		d.options.Reloaded(config)
	}
	if err := d.memory().hold(); err != nil {
		d.log.Warn("the memory of all agents is not limited as configured before the next start", "error", err)
	}
	d.reconciler.nudge()
	d.log.Info("the configuration was reloaded", "file", d.options.ConfigFile)
	return nil
}
