package daemon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/logs"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/kernel/spawn"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/runtime"
	"clove.run/clove/scheduler"
)

// children are the runs for agents that start agents: a spawn.Runs.
type children struct{ d *Daemon }

// Get returns a run as cloved last read it: it is asked within transactions of the other store.
func (k children) Get(id agent.ID) (agent.Run, bool) { return k.d.cache.get(id) }

// Admit checks a manifest as run.start does a spec.
func (k children) Admit(ctx context.Context, spec agent.Spec, files []agent.ManifestFile) (agent.Owner, error) {
	c, is := ctx.(*request)
	if !is {
		return agent.Owner{}, api.Failure(api.CodeInternal, "", "a manifest is added by a user")
	}
	spec.ID, spec.Name = agent.NewID(), "manifest"
	limits := k.d.limits()
	for _, check := range []func() error{
		func() error { return limits.checkSpec(c, spec) },
		func() error { return limits.checkUser(c, spec) },
		func() error { return limits.unchanged(c, files) },
	} {
		if err := check(); err != nil {
			return agent.Owner{}, err
		}
	}
	return c.peer.owner, nil
}

// Check refuses what the owner could not start now. What is resolved was checked when it was added; the
// configuration and the files may be others by now.
func (k children) Check(ctx context.Context, spec agent.Spec, owner agent.Owner, files []agent.ManifestFile) error {
	limits, c := k.d.limits(), ownedBy(ctx, owner)
	if err := limits.checkSpec(c, spec); err != nil {
		return err
	}
	if err := limits.checkCount(c, spec); err != nil {
		return err
	}
	return limits.unchanged(c, files)
}

// ownedBy is a request in the name of an owner.
func ownedBy(ctx context.Context, owner agent.Owner) *request {
	return &request{Context: ctx, peer: caller{principal: principal{owner: owner}}}
}

// unchanged reads files with the caller's rights, and refuses one that has another digest.
func (l admissionRules) unchanged(c *request, files []agent.ManifestFile) error {
	for _, file := range files {
		var sum string
		err := l.asUser(c, func() (err error) { sum, err = resolve.DigestFile(file.Path, digestMost); return err })
		if err != nil {
			return api.Failure(api.CodeDenied, "name what you can read yourself", "cannot read %.256s: %v", file.Path, err).By("", api.RuleUser+"files")
		}
		if sum != "sha256:"+file.SHA256 {
			return api.Failure(api.CodeConflict, "its owner adds the manifest again (clove manifest add), and gives a new grant", "%.256s is another file than when its manifest was added", file.Path).By("", api.RuleRequest+"files")
		}
	}
	return nil
}

// digestMost bounds a file of a manifest, in bytes: it is read at each spawn.
const digestMost = 64 << 20

// Beneath looks at both files with the owner's rights, and follows no link: their paths are canonical, or were.
// A file system that does not answer in time has no such file.
func (k children) Beneath(ctx context.Context, owner agent.Owner, outer, inner string) (is bool) {
	c := ownedBy(ctx, owner)
	found := make(chan bool, 1)
	err := k.d.limits().asUser(c, func() error {
		var out, in unix.Stat_t
		if err := errors.Join(unix.Lstat(outer, &out), unix.Lstat(inner, &in)); err != nil {
			return err
		}
		real, err := filepath.EvalSymlinks(inner)
		found <- err == nil && real == inner && out.Dev == in.Dev && (owner.UID != 0 || out.Uid == in.Uid)
		return nil
	})
	return err == nil && <-found
}

// Programs are beside cloved, or where packages put them.
func (k children) Programs() string {
	programs, _ := runtime.Programs() // without it no run would start
	return programs
}

// Pack copies files of the parent's for a run that is to be queued.
func (k children) Pack(ctx context.Context, parent agent.Run, child agent.ID, all []api.SpawnFile, most int64) error {
	return k.d.shared.files.pack(ctx, parent, child, all, most)
}

// Give keeps the standard input of a run that is to be queued.
func (k children) Give(run agent.ID, input []byte, file string) error {
	return k.d.options.Paths.Spools().Give(run, input, file)
}

// Drop removes them.
func (k children) Drop(child agent.ID) { k.d.shared.files.drop(child) }

// Collect copies what a run has changed.
func (k children) Collect(ctx context.Context, to agent.Run, from agent.ID, p api.CollectParams) (api.CollectResult, error) {
	return k.d.shared.files.collect(ctx, to, from, p)
}

// Fetch copies what another run keeps.
func (k children) Fetch(ctx context.Context, to agent.Run, p api.FetchParams) error {
	return k.d.shared.files.fetch(ctx, to, p)
}

// Queue queues a run within its owner's limit of runs.
func (k children) Queue(run agent.Run) error {
	d := k.d
	d.admission.Lock()
	defer d.admission.Unlock()
	if err := d.cache.refresh(); err != nil {
		return err
	}
	if _, known := d.cache.get(run.Spec.ID); known {
		return nil
	}
	if _, err := os.Lstat(d.options.Paths.Log(run.Spec.ID)); !errors.Is(err, fs.ErrNotExist) {
		return nil // it was queued, and removed since
	}
	c := ownedBy(context.Background(), run.Owner)
	if err := d.limits().checkCount(c, run.Spec); err != nil {
		return err
	}
	if _, err := d.records.enqueue(run); err != nil {
		return err
	}
	d.log.Info("queued", "run", run.Spec.Name, "id", run.Spec.ID, "parent", run.Parent)
	d.reconciler.nudge()
	return nil
}

// Ended is the end of a run that does not start again.
func (k children) Ended(id agent.ID) *spawn.End {
	if k.d.cache.refresh() != nil {
		return nil
	}
	run, found := k.d.cache.get(id)
	if !found {
		run.Spec.ID = id
		if record, known := k.d.cache.lastRecord(run); known { // with --rm
			return &spawn.End{Record: record}
		}
		return &spawn.End{Record: agent.Record{Version: agent.RecordVersion, ID: id, Status: agent.StatusKilled, ExitCode: agent.ExitKilled, Ended: time.Now().UTC()}}
	}
	if run.State != agent.StateEnded || scheduler.StartsAgain(run) || run.Record == nil {
		return nil
	}
	return &spawn.End{Record: *run.Record, Output: tailOf(k.d.options.Paths, id)}
}

// Remove removes a run that has ended.
func (k children) Remove(id agent.ID) error {
	if err := k.d.cache.refresh(); err != nil {
		return err
	}
	run, found := k.d.cache.get(id)
	if !found {
		return nil
	}
	c := &request{Context: context.Background(), method: methods.RunRemove.Name, peer: caller{principal: principal{owner: run.Owner}, name: "the end of its work"}, run: run}
	_, err := k.d.runs().remove(c, api.RemoveParams{RunParams: api.RunParams{Run: string(id)}})
	if agent.KindOf(err) == agent.KindNotFound {
		return nil
	}
	return err
}

// Bounds of the end of a run's output that is kept for its parent.
const (
	outputMost  = 4 << 10 // bytes
	outputLines = 256
)

// tailOf is the end of what a run wrote, as text. A log that cannot be read has none.
func tailOf(paths runtime.Paths, id agent.ID) string {
	var tail []byte
	_ = logs.Read(context.Background(), paths.Log(id), logs.Choice{Tail: outputLines}, func(line api.LogLine) error {
		if line.Stream == api.StreamClove {
			return nil
		}
		tail = append(append(tail, line.Text...), line.Bytes...)
		if !line.Partial {
			tail = append(tail, '\n')
		}
		tail = tail[max(0, len(tail)-outputMost):]
		return nil
	})
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return strings.ToValidUTF8(string(tail), "\uFFFD")
}

// signalNumbers are those of the Linux kernel's signals that an agent sends.
var signalNumbers = map[string]unix.Signal{"TERM": unix.SIGTERM, "KILL": unix.SIGKILL, "INT": unix.SIGINT, "USR1": unix.SIGUSR1, "USR2": unix.SIGUSR2, "STOP": unix.SIGSTOP, "CONT": unix.SIGCONT}

// Suspend ends a run that is queued, and suspends its policy.
func (k children) Suspend(id agent.ID) error { return k.suspend(id, "the end of its parent") }

func (k children) suspend(id agent.ID, by string) error {
	if err := k.d.cache.refresh(); err != nil {
		return err
	}
	run, found := k.d.cache.get(id)
	if !found || run.State == agent.StateEnded && !scheduler.StartsAgain(run) {
		return nil
	}
	c := &request{Context: context.Background(), method: methods.RunStop.Name, peer: caller{principal: principal{owner: run.Owner}, name: by}, run: run}
	if run.State != agent.StateQueued {
		return k.d.runs().noteStop(c)
	}
	if err := k.d.runs().suspend(c); agent.KindOf(err) != agent.KindConflict {
		return err
	}
	return nil // its start has begun, and meets no parent
}

// pastQueue returns a run as a signal finds it: it waits for one that is just being queued. With ends, the signal ends
// the run: one in the queue is ended there, in the name of by, and one whose start has begun is waited for.
func (k children) pastQueue(id agent.ID, ends bool, by string) (run agent.Run, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	run, found, err := k.d.cache.until(ctx, id, func(_ agent.Run, found bool) bool { return found })
	if err != nil || !found {
		return run, cmp.Or(err, error(api.Failure(api.CodeNotFound, "", "the run is gone")))
	}
	if run.State == agent.StateQueued && ends {
		if err := k.suspend(id, by); err != nil {
			return run, err
		}
	}
	if !ends {
		return run, nil // a queued run is refused, which its sender knows
	}
	run, _, err = k.d.cache.until(ctx, id, func(run agent.Run, found bool) bool {
		return !found || run.State != agent.StateQueued && run.State != agent.StateStarting
	})
	return run, err
}

// EndIdle asks the supervisor of a run to end it because its agent has only waited.
func (k children) EndIdle(id agent.ID) error {
	return k.d.supervisors().call(context.Background(), id, supervisor.MethodIdle, api.Nothing{}, nil)
}

// byAgent is how a run's record names an agent that has ended it.
const byAgent = "the agent of a run above it"

// Signal does what run.signal does, in the name of the agent above.
func (k children) Signal(id agent.ID, signal, reason string) error {
	p := api.SignalParams{RunParams: api.RunParams{Run: string(id)}, Signal: int(signalNumbers[signal]), Policy: signal == "POLICY", Budget: signal == "BUDGET"}
	by := byAgent
	switch {
	case p.Own():
		p.Reason = reason
	case reason != "": // a signal of Linux's has none: it is with the agent that sent it
		by += ": " + reason
	}
	run, err := k.pastQueue(id, !slices.Contains([]string{"INT", "USR1", "USR2", "STOP", "CONT"}, signal), by)
	if err != nil || run.State == agent.StateEnded {
		return err
	}
	c := &request{Context: context.Background(), method: methods.RunSignal.Name, peer: caller{principal: principal{owner: run.Owner}, name: by}, run: run}
	_, err = k.d.runs().signal(c, p)
	return err
}
