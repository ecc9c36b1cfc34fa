package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/runtime"
	"clove.run/clove/secrets/sealed"
	"clove.run/clove/store"
	"clove.run/clove/tools/control"
	"clove.run/clove/tools/inside"
)

// openKernel opens kernel.db and the audit log, and makes the Kernel over both. It waits
// for clove backup and clove check, which use the file only while no cloved has it.
func (d *Daemon) openKernel() (s *shared, err error) {
	s = &shared{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	paths := d.options.Paths
	s.insides = inside.NewRuns(paths.Run)
	s.cache, s.sandboxes, s.logDir, s.tracer, s.audits = d.cache, d.sandboxes, audit.Dir(paths.State), d.tracer, d.audits
	s.files = files{paths.Spools(), d.cache, d.layers(), d.log}
	if s.file, err = store.OpenKernel(paths.Kernel(), storeTimeout, kernel.Tables()...); err != nil {
		return s, err
	}
	keys, err := audit.OpenKeys(audit.KeyDir(paths.State))
	if err != nil {
		return s, agent.Failed("audit keys", err)
	}
	if s.log, err = audit.Open(s.logDir, audit.Options{Keys: keys}); err != nil {
		return s, err
	}
	queued, err := kernel.Queued(s.file, s.logDir)
	if err != nil {
		return s, err
	}
	s.notes = newNotes(d.records, d.meter, d.log)
	s.kernel, err = kernel.New(kernel.Config{Store: s.file, Log: s.log, LogDir: s.logDir, Queued: queued, IsHost: runtime.IsHost, CheckNet: d.checkNet, Approvers: func() []uint32 { return d.config().Approvers },
		Note: s.notes.add, Caused: d.caused, Called: d.kernelCalled, Asked: func(kind api.ApprovalKind, outcome string) { d.meter.Asked(string(kind), outcome) }, Waiting: d.waiting, Ready: d.ready, Runs: children{d}, Changes: ownChanges{d.cache, d.layers()}, Find: d.cache.find, Event: d.cache.event, Services: s.services(),
		Blobs: kernel.BlobDir(paths.Kernel()), Files: s.files, Tools: s.insides, Secrets: secretKeys{sealed.NewKeeper(d.config().SecretKey)}})
	return s, err
}

// recover ends what a cloved before this one left: accounts of runs that are gone, and the
// logs of runs in the foreground that had no cloved. Accounts and logs that services still use are left
// (kernel.Sweep).
func (s *shared) recover(log *slog.Logger, flies func(budget.Reservation) bool) {
	lives := func(id agent.ID) bool {
		run, found := s.cache.get(id)
		return found && run.State != agent.StateEnded
	}
	known := func(id agent.ID) bool { _, found := s.cache.get(id); return found }
	if err := s.kernel.Sweep(known, lives, flies); err != nil {
		log.Error("budgets of runs that are gone are left", "error", err)
	}
	if err := s.kernel.RecoverChildren(); err != nil {
		log.Error("children of agents are not queued", "error", err)
	}
	runs, err := audit.Unlinked(s.logDir)
	for _, id := range runs {
		if lives(id) {
			continue
		}
		run, _ := s.cache.get(id) // one with --rm is gone: then its log is root's
		if lerr := s.log.Link(id, run.Owner.UID); agent.KindOf(lerr) != agent.KindBusy || lerr == nil {
			err = errors.Join(err, lerr)
		}
	}
	if err != nil {
		log.Error("the audit log of a run is not linked", "error", err)
	}
}

// caused notes the call from which ends of runs follow. Without the note their events do not name it.
func (d *Daemon) caused(call string, runs ...agent.ID) {
	if err := d.records.change(func(s *store.Store) error { return s.Caused(call, runs...) }); err != nil {
		d.log.Warn("the cause of an end is not stored", "call", call, "error", err)
	}
}

// ready notes what an agent said. Runs that wait for it are looked at as the store has changed.
func (d *Daemon) ready(id agent.ID) error {
	_, err := d.records.amend(id, agent.RunReady, "", func(run *agent.Run) { run.SetReady(time.Now().UTC()) })
	return err
}

// checkNet holds a rule against what the owner may have, and a ceiling's denials: whether the run
// itself denies that is not looked at.
func (d *Daemon) checkNet(rule agent.EgressRule, owner agent.Owner) error {
	spec := agent.Spec{Network: agent.NetworkAllowlist, Egress: agent.Egress{Rules: []agent.EgressRule{rule}}}
	if err := d.config().Users.checkReach(spec, principal{owner: owner}); err != nil {
		return err
	}
	if err := d.config().checkCeiling(spec, "network.mode", "network.allow"); err != nil {
		return err
	}
	return runtime.CheckRules(spec, owner)
}

// close ends the Kernel before its files.
func (s *shared) close() (err error) {
	if s.doors != nil {
		err = s.doors.Close()
	}
	if s.insides != nil {
		err = errors.Join(err, s.insides.Close())
	}
	if s.kernel != nil {
		err = errors.Join(err, s.kernel.Close())
	}
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// shared serves the methods about what agents share. It is made when kernel.db is open.
type shared struct {
	file      *store.Kernel
	log       *audit.Log
	kernel    *kernel.Kernel
	cache     *cache
	sandboxes sandboxes
	logDir    string
	notes     *notes
	tracer    *traces.Tracer
	audits    *slots // queries of the audit log
	files     files
	doors     *control.Control // of agents to tools
	insides   *inside.Runs     // where tools run
}

func (s *shared) methods() []handler {
	if s == nil { // it does not serve yet
		return nil
	}
	all := []handler{on(methods.Backup, s.backup), on(methods.Check, s.check), on(methods.KernelCall, s.call)}
	for _, m := range s.kernel.Methods() {
		all = append(all, handler{m.Method, s.decide})
	}
	return all
}

// decide takes a user's call through the stages of the Kernel, which records it, also where its
// parameters cannot be read.
func (s *shared) decide(c *request, p parameters) (any, error) {
	r := service.Request{Method: c.method, Text: p.text, Params: p.value}
	if p.wrong != nil {
		r.Params = nil // the Kernel finds what is wrong, and records it
	}
	return s.kernel.Call(c, service.Caller{Run: c.run, UID: c.peer.owner.UID}, r)
}

// services are those that need cloved's own parts. A request of theirs has the daemon's call as its
// context (decide).
func (s *shared) services() []*service.Service {
	return []*service.Service{
		service.New("panic").On(service.Act(methods.Panic, s.panic)),
		service.New("audit log").On(service.Stream(methods.AuditQuery, s.auditQuery)),
		service.New("supervisors").On(service.Stream(methods.KernelAttach, s.attach), service.Stream(methods.KernelMeter, s.meter)),
	}
}

// run returns the run that a supervisor names.
func (s *shared) run(id agent.ID) (agent.Run, error) {
	if err := s.cache.refresh(); err != nil {
		return agent.Run{}, err
	}
	run, found := s.cache.get(id)
	if !found {
		return run, api.Failure(api.CodeNotFound, "", "no run %.64q", string(id))
	}
	return run, nil
}

// attach reports a run's standing to its supervisor, until the supervisor leaves.
func (s *shared) attach(on *service.Call, p api.KernelParams) (none api.Nothing, out service.Outcome, err error) {
	c := on.Context.(*request)
	run, err := s.run(p.Run)
	if err != nil {
		return none, out, err
	}
	err = s.kernel.Attach(c, run, p.Begins, func(now api.Standing) {
		_ = c.note(api.NoteStanding, api.StandingNote{ID: c.id, Standing: now}) // a supervisor that has gone attaches again
	})
	if err != nil {
		return none, out, err
	}
	<-c.Done()
	out.Recorded = true // its end is no refusal
	return none, out, c.Err()
}

// maxReason bounds the reason of a panic, in bytes: every record has it.
const maxReason = 256

// panic ends all agents. They end first: the log comes after what cannot wait.
func (s *shared) panic(c *service.Call, p api.PanicParams) (result api.PanicResult, out service.Outcome, err error) {
	if p.Clear == (p.Reason != "") || len(p.Reason) > maxReason {
		return result, out, api.Failure(api.CodeParams, "", "say a reason of at most %d bytes, or clear", maxReason)
	}
	result.Ended = []string{}
	if p.Clear {
		err = s.sandboxes.ClearPanic()
	} else {
		var runs []agent.Run
		runs, err = s.sandboxes.Panic(p.Reason)
		s.kernel.Caused(c.ID, runs)
		for _, run := range runs {
			result.Ended = append(result.Ended, run.Name().String())
		}
	}
	entry := audit.PanicEntry(c.UID, p.Reason, len(result.Ended))
	out.Entry = &entry
	return result, out, err
}

// meter charges what the Linux kernel has counted of a run.
func (s *shared) meter(_ *service.Call, p api.KernelMeterParams) (none api.Nothing, out service.Outcome, err error) {
	run, err := s.run(p.Run)
	if err == nil {
		err = s.kernel.Meter(run, p.Start, p.Totals)
	}
	return none, out, err
}

// call answers an agent, for which its supervisor asks. It is the envelope of the agent's call, which
// is decided, recorded and counted by itself.
func (s *shared) call(c *request, p api.KernelCallParams) (json.RawMessage, error) {
	return s.agentCall(c, p.Run, p.Method, p.Params)
}

// agentCall answers an agent.
func (s *shared) agentCall(ctx context.Context, id agent.ID, method string, params json.RawMessage) (json.RawMessage, error) {
	run, found := s.cache.get(id)
	if !found {
		return nil, api.Failure(api.CodeNotFound, "", "no run %.64q", string(id))
	}
	call := string(agent.NewID())
	span := s.tracer.AgentCall(run, method, call)
	result, err := s.kernel.Call(ctx, service.Caller{Run: run, Agent: true, UID: run.Owner.UID, ID: call}, service.Request{Method: method, Text: params})
	span.End(resultCode(err))
	return result, err
}

// kernelCalled counts a call that the Kernel has decided.
func (d *Daemon) kernelCalled(c service.Caller, method string, err error, took time.Duration) {
	who := metrics.ByUser
	if c.Agent {
		who = metrics.ByAgent
	}
	var fault *api.Error
	if err != nil {
		fault = faultOf(err)
	}
	d.meter.Decided(who, method, fault, took)
}

// resultCode is the code of a call's result, as text.
func resultCode(err error) string {
	if err == nil {
		return metrics.Done
	}
	return faultOf(err).Data.Word
}

// backup copies kernel.db: no other process may open it.
func (s *shared) backup(_ *request, p api.BackupParams) (api.Nothing, error) {
	if !filepath.IsAbs(p.File) {
		return api.Nothing{}, api.Failure(api.CodeParams, "name it from the root on", "file: %.256q is no absolute path", p.File)
	}
	return api.Nothing{}, s.kernel.Backup(p.File)
}

func (s *shared) check(_ *request, _ api.Nothing) (api.CheckResult, error) {
	problems, err := s.kernel.Check()
	// An empty list, not null, where nothing is wrong.
	return api.CheckResult{Problems: append([]string{}, problems...)}, err
}
