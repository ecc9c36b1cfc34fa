package spawn

import (
	"cmp"
	"context"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// enqueue queues a child that is durable. If its owner may not start it now, that is recorded as its end.
func (s *Spawn) enqueue(k *Child) { s.surely(func() error { return s.queue(k) }) }

// retryTime is between two attempts at a store that fails.
const retryTime = time.Second

// surely repeats what fails until it has succeeded or the service is closed: then Recover does it.
func (s *Spawn) surely(do func() error) {
	s.working.Go(func() {
		for do() != nil {
			select {
			case <-time.After(retryTime):
			case <-s.closed:
				return
			}
		}
	})
}

func (s *Spawn) queue(k *Child) error {
	if parent, found := s.runs().Get(k.Parent); !found || parent.State == agent.StateEnded && parent.Spec.Kernel.Orphans == "" {
		return s.lost(k, "its parent ended before it was queued")
	}
	err := s.Launcher.give(k.ID, k.Queue.Owner.UID, k.Input, k.Blob)
	if err == nil {
		err = s.runs().Queue(*k.Queue)
	}
	if err != nil && agent.KindOf(err) != agent.KindInternal {
		return s.lost(k, agent.FailureOf(err).Message)
	}
	if err == nil {
		err = s.change(k.ID, func(_ *service.Call, now *Child) (service.Outcome, error) {
			now.Queue, now.Input, now.Blob = nil, nil, nil
			return service.Outcome{}, nil
		})
	}
	return err
}

// lost ends a child that was never queued.
func (s *Spawn) lost(k *Child, why string) error {
	s.runs().Drop(k.ID)
	now := time.Now().UTC()
	r := agent.Record{Version: agent.RecordVersion, ID: k.ID, Name: k.Run, Parent: k.Parent, Status: agent.StatusStartFailed, ExitCode: agent.ExitStartFailed, Ended: now,
		Error: &agent.Failure{Step: "spawn", Message: why}}
	return s.end(k.ID, &End{Record: r})
}

// change changes the row of a child, in the name of its parent.
func (s *Spawn) change(id agent.ID, do func(*service.Call, *Child) (service.Outcome, error)) error {
	return s.engine.Within(agent.Run{}, "spawn", "", func(c *service.Call) (out service.Outcome, err error) {
		k, err := of(c.Tx, id)
		if err != nil || k == nil {
			return out, err
		}
		if out, err = do(c, k); err != nil {
			return out, err
		}
		return out, Children.Put(c.Tx, k)
	})
}

// end keeps the end of a child, gives its place back and reports it. A repetition changes nothing. One that clove has
// started for its parent goes: what its service needs of it, that has kept.
func (s *Spawn) end(id agent.ID, end *End) error {
	done := false
	if err := s.endOnce(id, end, &done); err != nil || !done {
		return err
	}
	s.surely(func() error { return s.forget(id) })
	return nil
}

// forget removes the run of a child that clove has started for its parent, and its row.
func (s *Spawn) forget(id agent.ID) error {
	if err := s.runs().Remove(id); err != nil {
		return err
	}
	return s.engine.Within(agent.Run{}, "spawn", "", func(c *service.Call) (out service.Outcome, err error) {
		k, err := of(c.Tx, id)
		if err != nil || k == nil {
			return out, err
		}
		return out, Children.Delete(c.Tx, Children.Key(k))
	})
}

func (s *Spawn) endOnce(id agent.ID, end *End, forJob *bool) error {
	end.Record.Command = nil // its length has no bound that an answer could hold
	return s.change(id, func(c *service.Call, k *Child) (out service.Outcome, err error) {
		if k.End != nil {
			return out, nil
		}
		given, err := Results.Get(c.Tx, store.RunKey(k.ID, "result"))
		if err != nil {
			return out, err
		}
		if given != nil {
			end.Result = given.Value
		}
		k.Queue, k.Input, k.Blob, k.End = nil, nil, nil, end
		parent, _ := s.runs().Get(k.Parent)
		parent.Spec.ID = k.Parent
		if out, err = s.Places.ReleaseChild(c.Tx, parent, k.ID, c.Now); err != nil {
			return out, err
		}
		if *forJob = k.For != ""; *forJob && s.Launcher.Ended != nil {
			more, err := s.Launcher.Ended(c, &Start{ID: k.ID, For: k.For}, *end, nil)
			out.Add(more)
			return out, err
		}
		out.Notify(k.Parent, service.Notice{Kind: api.NoteChildEnded, Key: string(k.ID), Params: api.ChildNote{Child: s.shown(k)}})
		out.Topics = append(out.Topics, topicOf(k.ID), nameTopic(k.Parent, k.Name), nameTopic(k.Parent, k.Run))
		return out, nil
	})
}

// Happened keeps the end of a child, if an event was that. It ignores runs that no agent started.
func (s *Spawn) Happened(e agent.RunEvent) error {
	switch e.Kind {
	case agent.RunEnded, agent.RunLost, agent.RunGivenUp, agent.RunStopRequested, agent.RunRemoved:
	default:
		return nil
	}
	if err := cmp.Or(s.suspendBelow(e), s.Launcher.startEnded(e.ID)); err != nil {
		return err
	}
	var k *Child
	err := s.engine.Read(func(tx *store.KernelTx) (err error) { k, err = of(tx, e.ID); return err })
	if err != nil || k == nil || k.End != nil || k.Queue != nil && e.Kind == agent.RunRemoved {
		return err
	}
	// Before the next event: a run that is removed with its end loses what it has given.
	if end := s.runs().Ended(e.ID); end != nil && s.end(e.ID, end) != nil {
		s.surely(func() error { return s.end(e.ID, end) })
	}
	return nil
}

// suspendBelow ends the children of an ended run that are still queued, and suspends the restart policies of
// the others: no child starts in a later life of its parent. Their supervisors end those that run.
func (s *Spawn) suspendBelow(e agent.RunEvent) error {
	if run, found := s.runs().Get(e.ID); e.Kind != agent.RunEnded && e.Kind != agent.RunLost || found && run.Spec.Kernel.Orphans != "" {
		return nil
	}
	var all []*Child
	err := s.engine.Read(func(tx *store.KernelTx) (err error) { all, err = childrenOf(tx, e.ID); return err })
	for _, k := range all {
		if k.End == nil {
			s.surely(func() error { return s.runs().Suspend(k.ID) })
		}
	}
	return err
}

// Recover queues children that were answered and are not queued, and keeps the ends that a cloved before
// this one did not see.
func (s *Spawn) Recover() error {
	var open []*Child
	err := s.engine.Read(func(tx *store.KernelTx) error {
		all, err := Children.Below(tx, "")
		open = slices.DeleteFunc(all, func(k *Child) bool { return k.End != nil && k.For == "" })
		return err
	})
	for _, k := range open {
		if k.End != nil {
			err = cmp.Or(err, s.forget(k.ID))
			continue
		}
		if k.Queue != nil {
			if _, found := s.runs().Get(k.ID); !found {
				err = cmp.Or(err, s.queue(k))
				continue
			}
		}
		if end := s.runs().Ended(k.ID); end != nil {
			err = cmp.Or(err, s.end(k.ID, end))
		}
	}
	return cmp.Or(err, s.Launcher.recoverStarts())
}

// Waits reports whether a child was answered, or clove's own start is durable, and is not queued.
func (s *Spawn) Waits(id agent.ID) (waits bool, err error) {
	err = s.engine.Read(func(tx *store.KernelTx) error {
		k, err := of(tx, id)
		start, serr := Starts.Get(tx, string(id))
		waits = k != nil && k.Queue != nil || start != nil && start.Queue != nil
		return cmp.Or(err, serr)
	})
	return waits, err
}

// Begins forgets what a run had in an earlier life: its children have ended, and it has given nothing.
func Begins(tx *store.KernelTx, run agent.ID) error {
	all, err := Children.Below(tx, store.RunKey(run, ""))
	for _, k := range all {
		if k.End != nil {
			err = cmp.Or(err, Children.Delete(tx, Children.Key(k)))
		}
	}
	return cmp.Or(err, Results.Delete(tx, store.RunKey(run, "result")))
}

func topicOf(id agent.ID) service.Topic { return service.Topic("child/" + string(id)) }

func nameTopic(parent agent.ID, name string) service.Topic {
	return topicOf(parent) + "/" + service.Topic(name)
}

// awaited is what a call of agent.wait waits for. A name is looked up when it looks.
func awaited(c *service.Call, p api.ChildParams) service.Topic {
	if agent.ID(p.Child).Valid() {
		return topicOf(agent.ID(p.Child))
	}
	return nameTopic(c.Run.Spec.ID, p.Child)
}

// wait returns the end of a descendant.
func (s *Spawn) wait(c *service.Call, p api.ChildParams) (end api.ChildEnd, out service.Outcome, err error) {
	k, err := find(c, p.Child)
	if err != nil {
		return end, out, err
	}
	if k.End == nil {
		return end, out, service.ErrNotYet
	}
	return api.ChildEnd{Child: s.shown(k), Record: k.End.Record, Output: k.End.Output, Result: k.End.Result}, out, nil
}

// give keeps the result of the calling run, once.
func give(c *service.Call, p api.ResultParams) (none api.Nothing, out service.Outcome, err error) {
	value, err := api.Compacted("a result", p.Result)
	if err != nil {
		return none, out, err
	}
	old, err := Results.Get(c.Tx, store.RunKey(c.Run.Spec.ID, "result"))
	if err == nil && old != nil {
		err = api.Failure(api.CodeConflict, "it is given once", "the run has given its result already")
	}
	if err != nil {
		return none, out, err
	}
	return none, out, Results.Put(c.Tx, &result{Run: c.Run.Spec.ID, Value: value})
}

// signals are the names that agent.signal takes.
var signals = []string{"TERM", "KILL", "INT", "USR1", "USR2", "STOP", "CONT", "POLICY", "BUDGET"}

// ending are those that are meant to end it: of an end by others, no call is named as the cause.
var ending = []string{"TERM", "KILL", "POLICY", "BUDGET"}

// signal sends a descendant a signal when that is durable.
func (s *Spawn) signal(c *service.Call, p api.ChildSignalParams) (none api.Nothing, out service.Outcome, err error) {
	if !slices.Contains(signals, p.Signal) {
		return none, out, api.Failure(api.CodeParams, "use TERM, KILL, INT, USR1, USR2, STOP, CONT, POLICY or BUDGET", "%.32q is no signal", p.Signal)
	}
	if err := agent.ValidateReason(p.Reason); err != nil {
		return none, out, err
	}
	k, err := find(c, p.Child)
	if err == nil && k.End != nil {
		err = api.Failure(api.CodeConflict, "", "%s has ended", k.Run)
	}
	if err != nil {
		return none, out, err
	}
	out.About, out.Reason = p.Signal+" to "+k.Run, p.Reason
	id, call := k.ID, c.ID
	out.Durable = append(out.Durable, func() {
		s.working.Go(func() {
			if slices.Contains(ending, p.Signal) {
				s.engine.Caused(call, id)
			}
			_ = s.runs().Signal(id, p.Signal, p.Reason) // one that has ended meanwhile needs none
		})
	})
	return none, out, nil
}

// away refuses what needs cloved.
type away struct{}

func noCloved() error {
	return api.Failure(api.CodeUnenforceable, agent.StartCloved(), "cloved starts agents that agents ask for, and does not run")
}

func (away) Get(agent.ID) (agent.Run, bool) { return agent.Run{}, false }
func (away) Admit(context.Context, agent.Spec, []agent.ManifestFile) (agent.Owner, error) {
	return agent.Owner{}, noCloved()
}
func (away) Check(context.Context, agent.Spec, agent.Owner, []agent.ManifestFile) error {
	return noCloved()
}
func (away) Beneath(context.Context, agent.Owner, string, string) bool { return false }
func (away) Pack(context.Context, agent.Run, agent.ID, []api.SpawnFile, int64) error {
	return noCloved()
}
func (away) Drop(agent.ID)                       {}
func (away) Give(agent.ID, []byte, string) error { return noCloved() }
func (away) Programs() string                    { return "" }
func (away) Collect(context.Context, agent.Run, agent.ID, api.CollectParams) (api.CollectResult, error) {
	return api.CollectResult{}, noCloved()
}
func (away) Queue(agent.Run) error                                   { return noCloved() }
func (away) Remove(agent.ID) error                                   { return nil }
func (away) Ended(agent.ID) *End                                     { return nil }
func (away) Suspend(agent.ID) error                                  { return nil }
func (away) Signal(agent.ID, string, string) error                   { return noCloved() }
func (away) EndIdle(agent.ID) error                                  { return noCloved() }
func (away) Fetch(context.Context, agent.Run, api.FetchParams) error { return noCloved() }
