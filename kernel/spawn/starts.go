package spawn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Start is a run that clove itself starts for a service, from a manifest that a user has named. The row is kept
// until the run has ended and was removed.
type Start struct {
	ID  agent.ID `json:"id"`
	For string   `json:"for"` // what for, in the words of the service: KIND/...
	// Owner and Namespace are those of the run, for turns and bounds.
	Owner     uint32 `json:"owner"`
	Namespace string `json:"namespace,omitempty"`
	// Queue is the run as it is to be queued, and Input and Blob its standard input; nil: it has been queued.
	Queue *agent.Run      `json:"queue,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Blob  *api.Blob       `json:"blob,omitempty"`
	// Over says that the run has ended, and its service knows it.
	Over bool `json:"over,omitempty"`
}

// startsMost bounds the runs that clove has started itself and that have not ended.
const startsMost = 512

// startsFor is the index of starts by what they are for.
const startsFor = "starts_for"

// Starts is their table.
var Starts = store.Table[Start]{
	Bucket: "starts", Noun: "start",
	Key: func(s *Start) string { return string(s.ID) },
	Sound: func(s *Start) error {
		if !s.ID.Valid() || s.For == "" {
			return errors.New("it is for nothing")
		}
		return nil
	},
	Indexes: []store.Index[Start]{{Bucket: startsFor, Terms: func(s *Start) []string {
		if s.Over {
			return nil
		}
		return []string{s.For}
	}}},
	Bound: store.Bound[Start]{Most: startsMost, Error: func(*Start) error {
		return api.Failure(api.CodeBusy, "wait until some have ended", "clove has started %d runs for jobs and names", startsMost)
	}},
}

// Launch is what a service has started.
type Launch struct {
	Owner            uint32
	Manifest, Digest string
	Namespace        string
	For              string          // see Start
	Input            json.RawMessage // a line of standard input; nil: none
	Blob             *api.Blob       // of the owner's, behind that; nil: none
	Deadline         time.Time       // it ends then; zero: never
}

// Held is the newest manifest of an owner with a name, as a service holds it. namespace is the one that the runs
// must have; empty: the manifest's.
func Held(tx *store.KernelTx, owner uint32, name, namespace string) (*Manifest, error) {
	all, err := named(tx, owner, name)
	if err == nil && len(all) == 0 {
		err = noManifest(owner, name)
	}
	if err != nil {
		return nil, err
	}
	m := all[0]
	of := m.Spec.Kernel.Namespace
	switch {
	case namespace != "" && namespace != of:
		err = api.Failure(api.CodeConflict, "leave the namespace out, or name another manifest", "the manifest %s is of the namespace %q, and not of %q", name, of, namespace)
	case m.Spec.Restart.Policy != "" && m.Spec.Restart.Policy != agent.RestartNever:
		err = api.Failure(api.CodeConflict, "leave restart out of it", "the manifest %s has a restart policy: what clove starts by itself ends once", name)
	}
	return m, err
}

// Launcher starts runs for services.
type Launcher struct {
	// Ended is called when a run has ended that clove has started itself, in the transaction that forgets the start.
	// refused says why it was never queued; nil: it was. nil: nothing follows.
	Ended func(c *service.Call, start *Start, end End, refused error) (service.Outcome, error)
	// Spent refuses a run whose owner has nothing left to spend for it; nil: nothing does.
	Spent func(tx *store.KernelTx, run agent.Run, now time.Time) error

	// Content is the file of a blob of an owner's.
	Content func(owner uint32, digest string) (path string, err error)

	spawn *Spawn // has the runs, and tries again what has failed
}

// Launch keeps a run that is started when that is durable. The owner of the manifest pays for it.
func (l *Launcher) Launch(c *service.Call, w Launch) (id agent.ID, out service.Outcome, err error) {
	m, err := Manifests.Get(c.Tx, manifestKey(w.Owner, w.Manifest, w.Digest))
	if err == nil && m == nil {
		err = api.Failure(api.CodeNotFound, "add it again: clove manifest add, and name it again", "the manifest %.64q was removed", w.Manifest)
	}
	if err != nil {
		return "", out, err
	}
	run := agent.Run{Owner: m.Owner, Created: c.Now.UTC(), Executes: m.Files, Deadline: w.Deadline}
	run.Spec = identified(m.Spec, agent.NewID(), m.Name)
	run.Queue = agent.NewQueueState(run.Spec, c.Now.UTC())
	if err := cmp.Or(run.Spec.Validate(), l.admits(c, run)); err != nil {
		return "", out, err
	}
	start := &Start{ID: run.Spec.ID, For: w.For, Owner: w.Owner, Namespace: run.Spec.Kernel.Namespace, Queue: &run, Input: w.Input, Blob: w.Blob}
	out.Durable = append(out.Durable, func() { l.spawn.surely(func() error { return l.begin(start) }) })
	return start.ID, out, Starts.Put(c.Tx, start)
}

// admits refuses a run whose owner has nothing left to spend for it.
func (l *Launcher) admits(c *service.Call, run agent.Run) error {
	if l.Spent == nil {
		return nil
	}
	return l.Spent(c.Tx, run, c.Now)
}

// begin queues a run that clove starts itself. If that is refused, it is recorded as its end.
func (l *Launcher) begin(start *Start) error {
	run := *start.Queue
	if _, found := l.spawn.runs().Get(start.ID); found {
		return l.begun(start.ID)
	}
	err := l.spawn.runs().Check(context.Background(), run.Spec, run.Owner, run.Executes)
	if err == nil {
		err = l.give(start.ID, start.Owner, start.Input, start.Blob)
	}
	if err == nil {
		err = l.spawn.runs().Queue(run)
	}
	switch {
	case err == nil:
		return l.begun(start.ID)
	case agent.KindOf(err) == agent.KindInternal:
		return err
	}
	l.spawn.runs().Drop(start.ID)
	return l.endStart(start.ID, End{}, err)
}

// give keeps the standard input of a run that is to be queued.
func (l *Launcher) give(id agent.ID, owner uint32, input json.RawMessage, blob *api.Blob) error {
	var line []byte
	content := ""
	if input != nil {
		line = append([]byte(input), '\n')
	}
	if blob != nil {
		var err error
		if content, err = l.Content(owner, blob.SHA256); err != nil && api.ErrorOf(err).Code == api.CodeNotFound {
			err = noContent(blob)
		}
		if err != nil {
			return err
		}
	}
	if line == nil && content == "" {
		return nil
	}
	err := l.spawn.runs().Give(id, line, content)
	if blob != nil && errors.Is(err, fs.ErrNotExist) {
		err = noContent(blob)
	}
	return err
}

// noContent refuses a start whose blob is gone: its job was cancelled meanwhile, or the file was removed by hand.
func noContent(b *api.Blob) error {
	return &agent.Error{Kind: agent.KindNotFound, Message: "the blob " + b.SHA256 + " is not there", Hint: "sudo clove check says what is lost"}
}

// begun keeps that a run is queued.
func (l *Launcher) begun(id agent.ID) error {
	return l.changeStart(id, func(c *service.Call, now *Start) (service.Outcome, error) {
		now.Queue, now.Input, now.Blob = nil, nil, nil
		return service.Outcome{}, Starts.Put(c.Tx, now)
	})
}

// changeStart changes the row of a start, if it is there.
func (l *Launcher) changeStart(id agent.ID, do func(*service.Call, *Start) (service.Outcome, error)) error {
	return l.spawn.engine.Within(agent.Run{}, "start", "", func(c *service.Call) (out service.Outcome, err error) {
		start, err := Starts.Get(c.Tx, string(id))
		if err != nil || start == nil {
			return out, err
		}
		return do(c, start)
	})
}

// endStart tells the service of a start how it ended, and removes the run with its files: what its service needs of
// it, that has kept. refused says why it was never queued.
func (l *Launcher) endStart(id agent.ID, end End, refused error) error {
	if err := l.endOnce(id, end, refused); err != nil {
		return err
	}
	l.spawn.surely(func() error {
		if err := l.spawn.runs().Remove(id); err != nil {
			return err
		}
		return l.changeStart(id, func(c *service.Call, start *Start) (out service.Outcome, err error) {
			return out, Starts.Delete(c.Tx, string(id))
		})
	})
	return nil
}

func (l *Launcher) endOnce(id agent.ID, end End, refused error) error {
	return l.changeStart(id, func(c *service.Call, start *Start) (out service.Outcome, err error) {
		if start.Over {
			return out, nil
		}
		given, err := Results.Get(c.Tx, store.RunKey(id, "result"))
		if err != nil {
			return out, err
		}
		if given != nil {
			end.Result = given.Value
		}
		start.Over, start.Queue, start.Input, start.Blob = true, nil, nil, nil
		if l.Ended != nil {
			out, err = l.Ended(c, start, end, refused)
		}
		return out, cmp.Or(err, Starts.Put(c.Tx, start))
	})
}

// startEnded keeps the end of a run, if clove has started it itself.
func (l *Launcher) startEnded(id agent.ID) error {
	start, err := l.startOf(id)
	if err != nil || start == nil || start.Over {
		return err
	}
	if end := l.spawn.runs().Ended(id); end != nil && l.endStart(id, *end, nil) != nil {
		l.spawn.surely(func() error { return l.endStart(id, *end, nil) })
	}
	return nil
}

func (l *Launcher) startOf(id agent.ID) (start *Start, err error) {
	err = l.spawn.engine.Read(func(tx *store.KernelTx) error {
		start, err = Starts.Get(tx, string(id))
		return err
	})
	return start, err
}

// Begun returns now if a run is one that clove has started itself: others have its place in the queue. Else it returns
// no time.
func (l *Launcher) Begun(id agent.ID, now time.Time) time.Time {
	begun := false
	err := l.spawn.engine.Read(func(tx *store.KernelTx) error {
		start, err := Starts.Get(tx, string(id))
		k, kerr := of(tx, id)
		begun = start != nil || k != nil && k.For != ""
		return cmp.Or(err, kerr)
	})
	if err != nil || !begun {
		return time.Time{}
	}
	return now
}

// recoverStarts is Recover for what clove starts itself.
func (l *Launcher) recoverStarts() error {
	var all []*Start
	err := l.spawn.engine.Read(func(tx *store.KernelTx) (err error) {
		all, err = Starts.Below(tx, "")
		return err
	})
	for _, start := range all {
		if start.Queue != nil {
			if berr := l.begin(start); berr != nil {
				err = cmp.Or(err, berr)
				continue
			}
		}
		if end := l.spawn.runs().Ended(start.ID); end != nil || start.Over {
			end = cmp.Or(end, &End{})
			err = cmp.Or(err, l.endStart(start.ID, *end, nil))
		}
	}
	return err
}

// Pending are the starts of a kind whose runs have not begun to execute.
func (l *Launcher) Pending(tx *store.KernelTx, is func(*Start) bool) (pending []*Start, err error) {
	all, err := Starts.Below(tx, "")
	for _, start := range all {
		run, found := l.spawn.runs().Get(start.ID)
		if is(start) && !start.Over && (!found || run.Started.IsZero()) {
			pending = append(pending, start)
		}
	}
	return pending, err
}

// PendingChildren are the runs above of the children that clove has started for jobs and that have not begun to execute.
func (l *Launcher) PendingChildren(tx *store.KernelTx) (parents []agent.Run, err error) {
	all, err := Children.Indexed(tx, childrenFor, childrenFor)
	for _, k := range all {
		run, found := l.spawn.runs().Get(k.ID)
		if parent, known := l.spawn.runs().Get(k.Parent); known && k.End == nil && (!found || run.Started.IsZero()) {
			parents = append(parents, parent)
		}
	}
	return parents, err
}

// Starting reports whether a run is there that is for something, or is to come.
func Starting(tx *store.KernelTx, what string) (bool, error) {
	found, err := Starts.Indexed(tx, startsFor, what)
	return len(found) > 0, err
}

// Abort ends a run that clove has started itself, when the call is durable.
func (l *Launcher) Abort(id agent.ID, why string, out *service.Outcome) {
	out.Durable = append(out.Durable, func() {
		l.spawn.working.Go(func() { _ = l.spawn.runs().Signal(id, "KILL", why) }) // one that has ended meanwhile needs none
	})
}
