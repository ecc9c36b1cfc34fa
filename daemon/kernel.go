package daemon

import (
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
	"clove.run/clove/runtime"
	"clove.run/clove/store"
)

// openKernel opens kernel.db and the audit log, and makes the Kernel over both. It waits
// for clove backup and clove check, which use the file only while no cloved has it.
func (d *Daemon) openKernel() (s shared, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	paths := d.options.Paths
	s.cache, s.sandboxes, s.logDir, s.tracer, s.audits = d.cache, d.sandboxes, audit.Dir(paths.State), d.tracer, d.audits
	if s.file, err = store.OpenKernel(paths.Kernel(), storeTimeout); err != nil {
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
	s.kernel = kernel.New(kernel.Config{Store: s.file, Log: s.log, LogDir: s.logDir, Queued: queued, IsHost: runtime.IsHost, CheckNet: d.checkNet,
		Note: s.notes.add, Called: d.kernelCalled, Waiting: d.waiting})
	return s, nil
}

// recover ends what a cloved before this one left: accounts of runs that are gone, and the
// logs of runs in the foreground that had no cloved. What services still work for is left
// (kernel.Sweep).
func (s shared) recover(log *slog.Logger, flies func(budget.Reservation) bool) {
	lives := func(id agent.ID) bool {
		run, found := s.cache.get(id)
		return found && run.State != agent.StateEnded
	}
	known := func(id agent.ID) bool { _, found := s.cache.get(id); return found }
	if err := s.kernel.Sweep(known, lives, flies); err != nil {
		log.Error("budgets of runs that are gone are left", "error", err)
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

// checkNet holds a rule against what the owner may have.
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
func (s shared) close() (err error) {
	if s.kernel != nil {
		err = s.kernel.Close()
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
}

func (s shared) methods() []handler {
	all := []handler{
		on(methods.Backup, s.backup), on(methods.Check, s.check), on(methods.Panic, s.panic),
		on(methods.KernelAttach, s.attach), on(methods.KernelCall, s.call), on(methods.KernelMeter, s.meter), on(methods.AuditQuery, s.auditQuery),
		on(methods.BudgetSet, s.setBudget), on(methods.BudgetList, s.listBudgets), on(methods.BudgetReport, s.reportBudgets), on(methods.BudgetTop, s.topBudgets),
	}
	for _, name := range kernel.Methods() {
		m, _ := methods.Find(name)
		// The Kernel decodes the parameters: it records calls that it cannot read, too.
		all = append(all, handler{m, func(c *call, p parameters) (any, error) {
			return s.kernel.Call(kernel.Caller{Run: c.run, UID: c.peer.owner.UID}, name, p.text)
		}})
	}
	return all
}

func (s shared) setBudget(c *call, p api.BudgetSetParams) (api.BudgetResult, error) {
	return s.kernel.SetBudget(c.peer.owner.UID, p)
}

func (s shared) listBudgets(c *call, p api.BudgetListParams) (api.BudgetListResult, error) {
	return s.kernel.ListBudgets(c.peer.owner.UID, p)
}

func (s shared) reportBudgets(c *call, p api.BudgetReportParams) (api.BudgetReportResult, error) {
	return s.kernel.ReportBudgets(c.peer.owner.UID, p)
}

func (s shared) topBudgets(c *call, p api.BudgetTopParams) (api.BudgetTopResult, error) {
	return s.kernel.TopBudgets(c.peer.owner.UID, p)
}

// run returns the run that a supervisor names.
func (s shared) run(id agent.ID) (agent.Run, error) {
	if err := s.cache.refresh(); err != nil {
		return agent.Run{}, err
	}
	run, found := s.cache.get(id)
	if !found {
		return run, api.Failure(api.CodeNotFound, "", "no run %.64q", string(id))
	}
	return run, nil
}

// attach reports to a supervisor how its run stands, until it leaves.
func (s shared) attach(c *call, p api.KernelParams) (api.Nothing, error) {
	run, err := s.run(p.Run)
	if err != nil {
		return api.Nothing{}, err
	}
	err = s.kernel.Attach(c, run, p.Begins, func(now api.Standing) {
		_ = c.note(api.NoteStanding, api.StandingNote{ID: c.id, Standing: now}) // a supervisor that has gone attaches again
	})
	if err != nil {
		return api.Nothing{}, err
	}
	<-c.Done()
	return api.Nothing{}, c.Err()
}

// maxReason bounds the reason of a panic, in bytes: it stands in every record.
const maxReason = 256

// panic ends all agents. They end first: the log comes after what cannot wait.
func (s shared) panic(c *call, p api.PanicParams) (api.PanicResult, error) {
	if p.Clear == (p.Reason != "") || len(p.Reason) > maxReason {
		return api.PanicResult{}, api.Failure(api.CodeParams, "", "say a reason of at most %d bytes, or clear", maxReason)
	}
	result := api.PanicResult{Ended: []string{}}
	var err error
	id := string(agent.NewID())
	if p.Clear {
		err = s.sandboxes.ClearPanic()
	} else {
		var runs []agent.Run
		runs, err = s.sandboxes.Panic(p.Reason)
		s.kernel.Caused(id, runs)
		for _, run := range runs {
			result.Ended = append(result.Ended, run.Name().String())
		}
	}
	entry := audit.PanicEntry(c.peer.owner.UID, p.Reason, len(result.Ended))
	entry.Correlation = id
	_, lerr := s.log.AppendEnd(entry)
	return result, errors.Join(err, lerr)
}

// meter charges what the Linux kernel has counted of a run.
func (s shared) meter(_ *call, p api.KernelMeterParams) (api.Nothing, error) {
	run, err := s.run(p.Run)
	if err != nil {
		return api.Nothing{}, err
	}
	return api.Nothing{}, s.kernel.Meter(run, p.Start, p.Totals)
}

// call answers an agent, for which its supervisor asks. The agent is not the caller.
func (s shared) call(_ *call, p api.KernelCallParams) (json.RawMessage, error) {
	run, found := s.cache.get(p.Run)
	if !found {
		return nil, api.Failure(api.CodeNotFound, "", "no run %.64q", string(p.Run))
	}
	id := string(agent.NewID())
	span := s.tracer.AgentCall(run, p.Method, id)
	result, err := s.kernel.Call(kernel.Caller{Run: run, Agent: true, UID: run.Owner.UID, ID: id}, p.Method, p.Params)
	span.End(wordOf(err))
	return result, err
}

// kernelCalled counts a call that the Kernel has decided.
func (d *Daemon) kernelCalled(c kernel.Caller, method string, err error, took time.Duration) {
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

// wordOf is the word of a call's result.
func wordOf(err error) string {
	if err == nil {
		return metrics.Done
	}
	return faultOf(err).Data.Word
}

// backup copies kernel.db: no other process may open it.
func (s shared) backup(_ *call, p api.BackupParams) (api.Nothing, error) {
	if !filepath.IsAbs(p.File) {
		return api.Nothing{}, api.Failure(api.CodeParams, "name it from the root on", "file: %.256q is no absolute path", p.File)
	}
	return api.Nothing{}, s.file.Backup(p.File)
}

func (s shared) check(_ *call, _ api.Nothing) (api.CheckResult, error) {
	problems, err := s.file.Check()
	// An empty list, not null, where nothing is wrong.
	return api.CheckResult{Problems: append([]string{}, problems...)}, err
}
