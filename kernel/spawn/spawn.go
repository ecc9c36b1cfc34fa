package spawn

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
	"clove.run/clove/loop/order"
	"clove.run/clove/policies/compare"
	"clove.run/clove/store"
)

// Runs is what the service needs of the runs, which are in another store. Where it is nil, as in a run
// without cloved, no agent starts another.
type Runs interface {
	// Get returns a run as it was a moment ago, and does not wait; false: there is none.
	Get(agent.ID) (agent.Run, bool)
	// Admit refuses a manifest that the user who makes the request could not run, and returns that user.
	// The files have the digests.
	Admit(ctx context.Context, spec agent.Spec, files []agent.ManifestFile) (agent.Owner, error)
	// Check refuses a spec that its owner could not start now, or of which a file is another one by now.
	Check(ctx context.Context, spec agent.Spec, owner agent.Owner, files []agent.ManifestFile) error
	// Beneath is compare.Now.Beneath for runs of an owner. It reads files, and is asked within no transaction.
	Beneath(ctx context.Context, owner agent.Owner, outer, inner string) bool
	// Pack copies files of a run for one that is to be queued, with at most so many bytes. Drop removes them.
	Pack(ctx context.Context, parent agent.Run, child agent.ID, files []api.SpawnFile, most int64) error
	Drop(child agent.ID)
	// Give keeps the standard input of a run that is to be queued, until it starts: some bytes, and behind them a
	// file of root's, which may be removed then; empty: none. Drop removes it.
	Give(run agent.ID, input []byte, file string) error
	// Collect copies what a run has changed below a path of another's.
	Collect(ctx context.Context, to agent.Run, from agent.ID, p api.CollectParams) (api.CollectResult, error)
	// Fetch copies what another run keeps below a path of a run's. It refuses alike whatever there is
	// not: such a run, or a folder that it keeps.
	Fetch(ctx context.Context, to agent.Run, p api.FetchParams) error
	// Queue queues a run, unless there is one with its id.
	Queue(agent.Run) error
	// Programs is the host's directory of clove's own programs.
	Programs() string
	// Ended returns the end of a run that does not start again; nil: it may.
	Ended(agent.ID) *End
	// Suspend ends a run that is queued, and keeps one that runs from starting again.
	Suspend(agent.ID) error
	// Remove removes a run that has ended; one that is gone is no error.
	Remove(run agent.ID) error
	// Signal sends a run a signal, or ends it.
	Signal(run agent.ID, signal, reason string) error
	// EndIdle asks a run to end because its agent has only waited.
	EndIdle(run agent.ID) error
}

// Rights are what the service needs of the grants.
type Rights interface {
	// Spawning is the grant of the call's run that covers a manifest.
	Spawning(c *service.Call, manifest string) (grant.Grant, error)
	// ForChild derives each grant of the child's spec from the call's run.
	ForChild(c *service.Call, child agent.Run) (service.Outcome, error)
}

// Places are how many children a run may have at once.
type Places interface {
	ReserveChild(c *service.Call, child agent.ID) (service.Outcome, error)
	ReleaseChild(tx *store.KernelTx, parent agent.Run, child agent.ID, now time.Time) (service.Outcome, error)
	// Children is how many live descendants a run may have.
	Children(tx *store.KernelTx, run agent.Run) (int64, error)
}

// Spawn is the service. Its methods may be called from many goroutines.
type Spawn struct {
	Runs   Runs
	Rights Rights
	Places Places
	IsHost func(netip.Addr) bool
	// Launcher starts runs that no agent has asked for.
	Launcher Launcher

	engine  *service.Engine
	working sync.WaitGroup
	closed  chan struct{}
}

// Service returns its methods.
func (s *Spawn) Service() *service.Service {
	names := func(p api.SpawnParams) []string { return []string{string(grant.Spawn) + ":" + p.Manifest} }
	about := func(p api.SpawnParams) string { return p.Manifest }
	return service.New("spawn").On(
		service.Prepared(methods.ManifestAdd, service.Stages[api.ManifestAddParams]{}, s.prepareAdd, s.add, nil),
		service.Read(methods.ManifestList, service.Stages[api.ManifestListParams]{}, s.list),
		service.Write(methods.ManifestRemove, service.Stages[api.ManifestNameParams]{}, s.remove),
		service.Asked(agent.AskSpawn, service.Prepared(agents.AgentSpawn, service.Stages[api.SpawnParams]{Covers: names, About: about}, s.prepare, s.spawn, s.drop),
			func(c *service.Call, p api.SpawnParams, made *Prepared) (service.Asking, error) {
				return question(s, c, p, made)
			}),
		service.Read(agents.AgentList, service.Stages[api.ChildListParams]{}, s.childrenOf),
		service.Read(agents.AgentTree, service.Stages[api.ChildListParams]{}, s.tree),
		service.Wait(agents.AgentWait, service.Stages[api.ChildParams]{}, awaited, s.wait),
		service.Prepared(agents.AgentCollect, service.Stages[api.CollectParams]{About: func(p api.CollectParams) string { return p.Child }}, s.collect, collected, nil),
		service.Prepared(agents.AgentFetch, service.Stages[api.FetchParams]{Covers: kept, About: func(p api.FetchParams) string { return p.Keeper }}, s.fetch, fetched, nil),
		service.Write(agents.AgentSignal, service.Stages[api.ChildSignalParams]{}, s.signal),
		service.Write(agents.AgentResult, service.Stages[api.ResultParams]{}, give),
	)
}

// Serve begins with what the engine has; Close ends it.
func (s *Spawn) Serve(e *service.Engine) {
	s.engine, s.closed = e, make(chan struct{})
	s.Launcher.spawn = s
}

// Close waits for what is under way.
func (s *Spawn) Close() {
	close(s.closed)
	s.working.Wait()
}

// runs are none where no cloved runs.
func (s *Spawn) runs() Runs {
	if s.Runs == nil {
		return away{}
	}
	return s.Runs
}

// Prepared is what is made for a spawn before its transaction.
type Prepared struct {
	id      agent.ID
	digest  string // of the manifest that was checked
	places  int64  // for live children of the parent's
	beneath map[[2]string]bool
	packed  bool // files are copied for it
}

// Digest is that of the manifest which was checked.
func (made *Prepared) Digest() string { return made.digest }

// ForJob are the children that clove starts for jobs of a run's own queue.
type ForJob struct {
	Launch
	Made *Prepared
}

// Ready is what agent.spawn checks before its transaction, for a run that has its jobs done by children. It may wait
// for files.
func (s *Spawn) Ready(c *service.Call, manifest string) (*Prepared, error) {
	return s.prepare(c, api.SpawnParams{Manifest: manifest})
}

// StartChild is agent.spawn for a job of the call's run: it needs the same grant, which must hold the same digest, and
// takes the same places, rights and budgets.
func (s *Spawn) StartChild(c *service.Call, w ForJob) (id agent.ID, out service.Outcome, err error) {
	k, out, err := s.keep(c, api.SpawnParams{Manifest: w.Manifest}, w.Made, func(k *Child) error {
		if k.Digest != w.Digest {
			return api.Failure(api.CodeConflict, "the agent opens the queue again", "the grant of %s has changed since the queue was opened", w.Manifest)
		}
		k.For, k.Input, k.Blob = w.For, w.Input, w.Blob
		if d := w.Deadline; !d.IsZero() && (k.Queue.Deadline.IsZero() || d.Before(k.Queue.Deadline)) {
			k.Queue.Deadline = d
		}
		return nil
	})
	if err != nil {
		return "", out, err
	}
	return k.ID, out, nil
}

// prepare does what may wait for files: it looks at those of the manifest and of the mounts, and copies
// those that the request names. The transaction decides all of it anew, with what was found here.
func (s *Spawn) prepare(c *service.Call, p api.SpawnParams) (*Prepared, error) {
	made := &Prepared{id: agent.NewID(), beneath: map[[2]string]bool{}}
	if c.Uncovered() && len(p.Files) > 0 {
		return nil, api.Failure(api.CodeParams, "send them by mail or as keys, or ask the owner for a grant of spawn:"+p.Manifest, "a child that people are asked about gets no files: they could be others by then")
	}
	var m *Manifest
	err := s.engine.Look(c.Caller, func(look *service.Call) (err error) {
		if m, err = s.granted(look, c, p.Manifest); err == nil {
			made.places, err = s.Places.Children(look.Tx, c.Run)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// Outside of the transaction: a file system of the owner's may not answer.
	run, err := s.child(c, m, p, made, func(outer, inner string) bool {
		is := s.runs().Beneath(c.Context, c.Run.Owner, outer, inner)
		made.beneath[[2]string{outer, inner}] = is
		return is
	})
	if err != nil {
		return nil, err
	}
	made.digest = m.Digest
	if err := s.runs().Check(c.Context, run.Spec, run.Owner, m.Files); err != nil {
		return nil, err
	}
	if len(p.Files) == 0 {
		return made, nil
	}
	if err := s.runs().Pack(c.Context, c.Run, made.id, p.Files, run.Spec.Limits.DiskBytes); err != nil {
		return nil, err
	}
	made.packed = true
	return made, nil
}

// drop takes files back that were copied for a spawn which did not happen.
func (s *Spawn) drop(made *Prepared) {
	if made.packed {
		s.runs().Drop(made.id)
	}
}

// granted is the manifest that a grant of the caller's holds. Where people are asked, it is the newest, and then the
// one that they have allowed. asked is the call, of which look is a part.
func (s *Spawn) granted(look, asked *service.Call, name string) (*Manifest, error) {
	digest, by := asked.Bound(), "that people have allowed"
	switch {
	case digest != "":
	case asked.Uncovered():
		var err error
		if digest, err = Digest(look.Tx, look.Run.Owner.UID, name); err != nil {
			return nil, err
		}
	default:
		g, err := s.Rights.Spawning(look, name)
		if err != nil {
			return nil, err
		}
		digest, by = g.Digest, "of grant "+g.ID
	}
	m, err := Manifests.Get(look.Tx, manifestKey(look.Run.Owner.UID, name, digest))
	if err == nil && m == nil {
		err = api.Failure(api.CodeNotFound, "its owner adds it again, and gives a new grant", "the manifest %s %s was removed", name, by)
	}
	return m, err
}

func (s *Spawn) spawn(c *service.Call, p api.SpawnParams, made *Prepared) (result api.SpawnResult, out service.Outcome, err error) {
	k, out, err := s.keep(c, p, made, func(*Child) error { return nil })
	if err == nil {
		result.Child = s.shown(k)
	}
	return result, out, err
}

// keep takes a place, derives the grants, and keeps the run as it is to be queued. also adds to it, or refuses.
func (s *Spawn) keep(c *service.Call, p api.SpawnParams, made *Prepared, also func(*Child) error) (k *Child, out service.Outcome, err error) {
	m, err := s.granted(c, c, p.Manifest)
	if err != nil {
		return nil, out, err
	}
	if m.Digest != made.digest {
		return nil, out, api.Failure(api.CodeConflict, "ask again", "the grant of %s has changed meanwhile", p.Manifest)
	}
	run, err := s.child(c, m, p, made, func(outer, inner string) bool { return made.beneath[[2]string{outer, inner}] })
	if err != nil {
		return nil, out, err
	}
	if err := cmp.Or(s.unused(c, p.Name), enoughDisk(c, run)); err != nil {
		return nil, out, err
	}
	k = &Child{Parent: c.Run.Spec.ID, ID: run.Spec.ID, Run: run.Spec.Name, Name: p.Name, Manifest: m.Name, Digest: m.Digest, DiskBytes: run.Spec.Limits.DiskBytes, Created: c.Now.UTC(), Queue: &run}
	for _, above := range run.Above {
		k.Above = append(k.Above, above.ID)
	}
	if err := also(k); err != nil {
		return nil, out, err
	}
	out, err = s.Places.ReserveChild(c, run.Spec.ID)
	if err != nil {
		return nil, out, err
	}
	derived, err := s.Rights.ForChild(c, run)
	if err != nil {
		return nil, out, err
	}
	out.Add(derived)
	out.About = m.Name + "@" + m.Digest + " as " + run.Spec.Name
	out.Object = string(run.Spec.ID)
	out.Happened(agent.RunSpawned, run.Spec.Name)
	out.Durable = append(out.Durable, func() { s.enqueue(k) })
	return k, out, Children.Put(c.Tx, k)
}

// unused refuses a name that another live child of the caller has.
func (s *Spawn) unused(c *service.Call, name string) error {
	if name == "" {
		return nil
	}
	if err := agent.ValidateName(name); err != nil {
		return err
	}
	all, err := Children.Below(c.Tx, store.RunKey(c.Run.Spec.ID, ""))
	if slices.ContainsFunc(all, func(k *Child) bool { return k.Name == name && k.End == nil }) {
		err = cmp.Or(err, error(api.Failure(api.CodeConflict, "choose another, or wait for its end", "a child has the name %s", name)))
	}
	return err
}

// child is the run that a request asks for, if it has no more than the manifest and no more than the
// caller.
func (s *Spawn) child(c *service.Call, m *Manifest, p api.SpawnParams, made *Prepared, beneath func(outer, inner string) bool) (run agent.Run, err error) {
	parent := c.Run
	if live, found := s.runs().Get(parent.Spec.ID); found {
		parent = live // with what was updated since the call began
	}
	if err := deepEnough(parent); err != nil {
		return run, err
	}
	spec, err := narrowed(m.Spec, p)
	if err != nil {
		return run, err
	}
	if p.Limits.DiskBytes == 0 {
		shared(&spec, parent.Spec, made.places)
	}
	deadline := deadlineOf(parent)
	run = agent.Run{Owner: parent.Owner, CallerRlimits: parent.CallerRlimits, Created: c.Now.UTC(), Parent: parent.Spec.ID, Above: parent.Under(), Executes: m.Files, Deadline: deadline}
	now := compare.Now{Time: c.Now, Deadline: deadline, Beneath: beneath, IsHost: s.IsHost, Shown: s.loop()}
	spec = compare.Inherit(parent.Spec, spec, now)
	run.Spec = identified(spec, made.id, m.Name)
	run.Queue = agent.NewQueueState(run.Spec, c.Now.UTC())
	if err := tooWide(compare.Wider(parent.Spec, run.Spec, now)); err != nil {
		return run, err
	}
	if err := s.unmovable(parent, run.Spec.Files); err != nil {
		return run, err
	}
	return run, run.Spec.Validate()
}

// loop is how a child with a model sees clove's own agent loop.
func (s *Spawn) loop() agent.Bind {
	return agent.Bind{Source: filepath.Join(s.runs().Programs(), filepath.Base(order.Program)), Target: order.Program, ReadOnly: true}
}

// tooWide refuses a child that would have more than its parent, and says all of it.
func tooWide(wider []compare.Difference) error {
	if len(wider) == 0 {
		return nil
	}
	texts := []string{wider[0].Err().Error()}
	for _, d := range wider[1:min(len(wider), widerShown)] {
		texts = append(texts, fmt.Sprintf("%s: %s instead of %s", d.Field, d.Child, d.Parent))
	}
	if left := len(wider) - len(texts); left > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", left))
	}
	return api.Failure(api.CodeDenied, wider[0].Hint, "%s", strings.Join(texts, "; ")).By(StageParent, api.RuleParent+wider[0].Field)
}

// widerShown bounds the differences in one refusal.
const widerShown = 8

// unmovable refuses a mount of a source that an agent above could replace by another file until it is
// mounted: one below a directory that it may write to. What shows the directory itself is as the agent's own.
func (s *Spawn) unmovable(parent agent.Run, child agent.Files) error {
	sources := []string{child.Workspace}
	for _, b := range child.Binds {
		sources = append(sources, b.Source)
	}
	runs := []agent.Run{parent}
	for _, above := range parent.Above {
		if run, found := s.runs().Get(above.ID); found {
			runs = append(runs, run)
		}
	}
	for _, run := range runs {
		for _, b := range run.Spec.Files.Binds {
			at := slices.IndexFunc(sources, func(source string) bool { return strings.HasPrefix(source, b.Source+"/") })
			if at >= 0 && !b.ReadOnly {
				return api.Failure(api.CodeDenied, "show it all of "+b.Source+", or let "+run.Spec.Name+" only read that", "%s may write to %s, and could put another file at %s", run.Spec.Name, b.Source, sources[at]).
					By(StageParent, api.RuleParent+"files.binds.source")
			}
		}
	}
	return nil
}

// deepEnough refuses a child of a run if one of those above allows no more levels below its children.
func deepEnough(parent agent.Run) error {
	for levels, above := range parent.Above {
		if levels >= above.Depth {
			return api.Failure(api.CodeDenied, "its owner starts it with --spawn-depth", "%s allows %d levels of agents below its children", above.Name, above.Depth).By(StageParent, api.RuleParent+"kernel.spawn_depth")
		}
	}
	return nil
}

// StageParent is the step in which a child is held against its parent, as refusals name it.
const StageParent = "parent"

// deadlineOf is when a live run ends at the latest; zero: it has no limit.
func deadlineOf(run agent.Run) time.Time {
	end := run.Deadline
	if limit := run.Spec.Limits.WallClock; limit > 0 && !run.Started.IsZero() {
		if own := run.Started.Add(limit); end.IsZero() || own.Before(end) {
			end = own
		}
	}
	return end.UTC()
}
