package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// Sandboxes executes runs as clove run does.
type Sandboxes interface {
	// Run returns the record of a run that has ended. An error means that nothing ran.
	Run(ctx context.Context, spec agent.Spec, out Output) (agent.Record, error)
	// Collect writes what the run changed in its workspace into the host's folder, and
	// returns all of it, with what was refused. It writes nothing if the files together have
	// more bytes than most: a layer of any size can hold a file that is one large hole.
	Collect(ctx context.Context, id agent.ID, most int64) ([]agent.Change, error)
	// KeepLayer writes everything that the run changed in its root to a file, from which
	// Output.Layer begins. kept is false if it changed nothing.
	KeepLayer(ctx context.Context, id agent.ID, to string) (kept bool, err error)
	// Remove forgets a run that has ended, and its layer.
	Remove(ctx context.Context, id agent.ID) error
}

// Output is where a run writes to, and who is called once the agent executes.
type Output struct {
	Layer          string  // a file of KeepLayer that the run begins with; empty: an unchanged root
	Shown          *string // another one, whose whole root it sees read-only at AttemptRoot; nil: none
	Stdout, Stderr *os.File
	Started        func()
}

// Runner runs the attempts of one bench.
type Runner struct {
	Suite     *suite.Suite
	Host      host.Host
	Dir       string // of the results, absolute
	Sandboxes Sandboxes
	Memory    int64 // bytes that the attempts together may be limited to
	Parallel  int   // attempts at once, as far as there is room; 0: as many as there is room for
	Retries   int   // further tries of an attempt that failed for the infrastructure
	FailFast  bool  // begin no attempt after one that has not passed
	NoParity  bool
	// Done is called after each attempt, one at a time.
	Done func(bench.Result)

	prepared map[string]prepared // by environment
}

// ErrStopped says that attempts are left: the caller asked for the end, or FailFast did.
var ErrStopped = errors.New("attempts are left")

// Run runs attempts and appends their results to a file of bench.OpenResults. It returns when
// the last sandbox has ended.
func (r *Runner) Run(ctx context.Context, results *os.File, attempts []plan.Attempt) error {
	defer os.RemoveAll(filepath.Join(r.Dir, workDir))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	free := newPool(r.Host.CPUs, r.Memory, r.places(len(attempts)))
	var all sync.WaitGroup
	var mu sync.Mutex // guards results, failed and Done
	var failed error
	for _, a := range attempts {
		room, _ := r.room(a) // Check read it
		cpus, err := free.take(ctx, room)
		if err != nil {
			break
		}
		all.Go(func() {
			defer free.give(cpus, room)
			result, err := r.attempt(ctx, a, cpus)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = r.record(results, result)
			}
			if err != nil {
				failed = errors.Join(failed, err)
				stop()
			} else if r.FailFast && result.Outcome != bench.Passed {
				failed = errors.Join(failed, ErrStopped)
				stop()
			}
		})
	}
	all.Wait()
	if failed == nil && ctx.Err() != nil {
		return ErrStopped
	}
	return failed
}

func (r *Runner) record(results *os.File, result bench.Result) error {
	if err := bench.AppendResult(results, result); err != nil {
		return err
	}
	if r.Done != nil {
		r.Done(result)
	}
	return nil
}

func (r *Runner) places(attempts int) int {
	for _, n := range []int{r.Parallel, r.Suite.Parallel} {
		if n > 0 {
			return n
		}
	}
	return max(1, attempts)
}

// room is what the agent and the grader of an attempt need, one after the other.
func (r *Runner) room(a plan.Attempt) (Room, error) {
	var most Room
	for _, q := range []resolve.Request{r.ofAgent(a, r.work(a), nil), r.ofGrader(a, r.work(a), nil)} {
		memory, err := agent.ParseSize(q.Text(settings.Memory))
		if err != nil {
			return most, err
		}
		cpus, err := share(q.Text(settings.CPUs))
		if err != nil {
			return most, err
		}
		most = Room{max(most.CPUs, wholeCPUs(cpus)), max(most.Memory, memory)}
	}
	return most, nil
}

// Check refuses a bench of which an attempt could never begin, before anything is made.
func (r *Runner) Check(attempts []plan.Attempt) error {
	for _, a := range attempts {
		room, err := r.room(a)
		switch {
		case err != nil:
			return agent.Failed(a.ID(), err)
		case room.CPUs > len(r.Host.CPUs):
			return &agent.Error{Kind: agent.KindUnenforceable, Step: "bench", Hint: "lower cpus in its limits, or use a larger machine",
				Message: a.ID() + " needs more processors than this machine has"}
		case room.Memory > r.Memory:
			return &agent.Error{Kind: agent.KindUnenforceable, Step: "bench", Hint: "lower memory in its limits, or end what else runs here",
				Message: a.ID() + " may use more memory than this machine has left"}
		}
		for _, q := range []resolve.Request{r.ofAgent(a, r.work(a), r.Host.CPUs[:room.CPUs]), r.ofGrader(a, r.work(a), r.Host.CPUs[:room.CPUs])} {
			if err := r.dry(q); err != nil {
				return err
			}
		}
	}
	return nil
}

// dry builds a spec for which no folder exists yet: mistakes in limits, networks and names
// are found before the first attempt.
func (r *Runner) dry(q resolve.Request) error {
	q.Set(settings.Workspace, "")
	q.SetList(settings.Volume, nil)
	if len(q.Args) == 0 {
		return nil // its grader has no command
	}
	_, err := resolve.Spec(q, r.Host, agent.NewID())
	return err
}

func sinceMS(began time.Time) float64 { return float64(time.Since(began).Microseconds()) / 1000 }
