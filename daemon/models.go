package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/logs"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/attach"
	"clove.run/clove/models/config"
	"clove.run/clove/models/control"
	"clove.run/clove/runtime"
)

// inference serves models to the agents of all runs.
type inference struct {
	control  *control.Control
	listener *net.UnixListener
	current  atomic.Pointer[config.Config]
	path     func() string // of models.yaml
	mu       sync.Mutex    // guards seen
	seen     fileMark      // of the file that was read last, valid or not
	shared   *shared
	run      string // cloved's run directory
	log      *slog.Logger
	earlier  <-chan struct{} // closed when no calls of an earlier cloved are made any more; nil: there are none
	left     map[string]bool // what they had reserved, by id
}

// openModels settles the calls of a cloved before this one, as far as they have ended. A file
// with a mistake leaves the models that are built in, so that cloved starts; a reload says what
// is wrong again.
func (d *Daemon) openModels(ctx context.Context) error {
	m := &inference{shared: d.shared, run: d.options.Paths.Run, log: d.log, path: func() string { return d.config().Models }, left: map[string]bool{}}
	m.seen = markOf(m.path())
	now, err := config.Load(m.path())
	if err != nil {
		d.log.Error("models are not served, but those that are built in", "error", err)
		now, err = config.Parse(nil)
	}
	if err != nil {
		return err
	}
	m.current.Store(now)
	m.control = control.New(control.Options{Ledger: d.shared.kernel.Ledger, Config: m.fresh, Programs: runtime.Programs, Log: d.log, Called: d.modelCalled, Contents: d.modelLog,
		Journals: d.options.Paths.Journals(), Run: d.shared.run,
		Secret: func(name string) (string, error) { return control.ReadSecret(d.config().Secrets, name) }, Secrets: d.shared.kernel.Secrets})
	d.inference = m
	d.openDoors()
	if m.earlier, err = m.control.Find(ctx); err != nil {
		d.log.Error("calls of models are left unsettled", "error", err)
	}
	return nil
}

// flies reports, of what a cloved before this one had reserved, what its calls may still use.
func (m *inference) flies(r budget.Reservation) bool {
	if m.earlier != nil && r.Service == control.Service {
		m.left[r.ID] = true
	}
	return m.left[r.ID]
}

// recover settles in full what such calls have not settled when the last of them has ended.
func (m *inference) recover(ctx context.Context) {
	if m.earlier == nil {
		return
	}
	select {
	case <-m.earlier:
		if err := m.shared.kernel.Ledger.Recover(func(r budget.Reservation) bool { return m.left[r.ID] }); err != nil {
			m.log.Error("calls of models are left unsettled", "error", err)
		}
	case <-ctx.Done():
	}
}

// accept begins to serve supervisors.
func (m *inference) accept(ctx context.Context) (err error) {
	if m.listener, err = attach.Listen(m.run); err == nil {
		go attach.Accept(ctx, m.listener, m.serve)
	}
	return err
}

func (m *inference) methods() []handler {
	return []handler{
		on(methods.ModelList, m.list),
		on(methods.ModelPrices, m.prices),
		on(methods.ModelTest, m.test),
		on(methods.ModelTop, m.top),
	}
}

func (m *inference) list(c *request, _ api.Nothing) (api.ModelListResult, error) {
	return api.ModelListResult{Models: m.control.List(c.peer.owner)}, nil
}

func (m *inference) prices(c *request, _ api.Nothing) (api.ModelPricesResult, error) {
	return api.ModelPricesResult{Prices: m.control.Prices(c.peer.owner)}, nil
}

func (m *inference) test(c *request, p api.ModelTestParams) (api.ModelTestResult, error) {
	return m.control.Test(c, p.Model)
}

// maxTop bounds the runs of model.top.
const maxTop = 100

// top lists the runs that use models now, of those that the caller sees.
func (m *inference) top(c *request, _ api.Nothing) (api.ModelTopResult, error) {
	runs := []api.ModelRun{}
	for _, a := range m.control.Activity() {
		spent := m.shared.kernel.LastMinute(a.Run.Spec.ID)
		if a.Flying+a.Waiting+int(spent[budget.ModelCalls]) == 0 || !c.peer.sees(&a.Run) {
			continue
		}
		runs = append(runs, api.ModelRun{ID: a.Run.Spec.ID, Name: a.Run.Spec.Name, Owner: a.Run.Owner.UID, Namespace: a.Run.Spec.Kernel.Namespace,
			Models: append([]string{}, a.Models...), InFlight: a.Flying, Waiting: a.Waiting, Calls: spent[budget.ModelCalls],
			TokensIn: spent[budget.TokensIn], TokensOut: spent[budget.TokensOut], CostMicros: spent[budget.CostMicros]})
	}
	slices.SortFunc(runs, func(a, b api.ModelRun) int {
		return cmp.Or(cmp.Compare(b.InFlight+b.Waiting, a.InFlight+a.Waiting), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.ID, b.ID))
	})
	return api.ModelTopResult{Runs: runs[:min(len(runs), maxTop)]}, nil
}

// modelCalled counts a call that has ended, traces it, and notes it among the run's events.
func (d *Daemon) modelCalled(run agent.Run, c models.Call) {
	d.tracer.ModelCall(run, c)
	d.shared.kernel.Ledger.Called(run.Spec.ID, agent.RunModelCalled, c.ID, callText(c))
	d.meter.ModelCalled(c) // last: a test that sees the count also finds the rest
}

// modelLog opens the log of what a run's calls say.
func (d *Daemon) modelLog(run agent.ID) (control.Contents, error) {
	return logs.OpenCalls(d.options.Paths.ModelLog(run), d.config().LogCapBytes())
}

// callText is a call for people. It holds no text of agents or providers.
func callText(c models.Call) string {
	text := string(c.Outcome)
	if c.Model != "" {
		text = c.Model + " at " + c.Provider + ": " + text
	}
	if c.Reason != "" {
		text += " reason=" + c.Reason
	}
	if c.Outcome == models.OutcomeRefused {
		return text
	}
	if c.Estimated {
		text += " estimated=true"
	}
	u := c.Usage
	return text + fmt.Sprintf(" status=%d tokens_in=%d tokens_cached=%d tokens_out=%d cost_micros=%d wait_ms=%d first_ms=%d total_ms=%d", c.Status,
		u.In+u.CacheWrite, u.Cached, u.Out, c.Cost, c.Wait.Milliseconds(), c.First.Milliseconds(), c.Total.Milliseconds())
}

// gauges are how many calls wait and are being made.
func (m *inference) gauges(set func(name string, value float64, labels ...string)) {
	loads := map[string]control.Load{config.Echo: {}, config.Scripted: {}}
	if m != nil { // else cloved does not serve yet
		loads = m.control.Loads()
	}
	for provider, now := range loads {
		set(metrics.ModelsWaiting, float64(now.Waiting), provider)
		set(metrics.ModelsInFlight, float64(now.Flying), provider)
	}
}

// serve serves the run that a supervisor names.
func (m *inference) serve(ctx context.Context, id agent.ID, what attach.For, listener *os.File) (use attach.Use, err error) {
	run, err := m.shared.run(id)
	if err != nil {
		listener.Close()
		return use, err
	}
	if what == attach.Tools {
		return use, m.shared.doors.ServeTools(ctx, run, listener)
	}
	use.Final, err = m.control.Serve(ctx, run, listener)
	use.SoFar, use.Changed = m.control.Used(id)
	return use, err
}

// waiting returns a run's calls of models that wait.
func (d *Daemon) waiting(run agent.ID) []api.WaitingCall {
	if d.inference == nil {
		return nil
	}
	return d.inference.control.Waiting(run)
}

// fileMark tells versions of a file apart. A file that is missing has the zero value.
type fileMark struct {
	path           string
	inode          uint64
	size           int64
	changed, times syscall.Timespec // the second: of the contents, which a user can set
}

func markOf(path string) fileMark {
	mark := fileMark{path: path}
	var s syscall.Stat_t
	if syscall.Stat(path, &s) == nil {
		mark.inode, mark.size, mark.changed, mark.times = s.Ino, s.Size, s.Ctim, s.Mtim
	}
	return mark
}

// fresh is the configuration that holds now. A file that has changed is read first; one with a
// mistake is logged once, and the configuration before it stays in force.
func (m *inference) fresh() *config.Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := m.path()
	if mark := markOf(path); mark != m.seen {
		m.seen = mark
		if now, err := config.Load(path); err != nil {
			m.log.Error("models.yaml has changed and has a mistake: the models that were read before it stay in force", "error", err, "hint", "correct it: the next call of a model reads it")
		} else {
			m.current.Store(now)
			m.log.Info("models.yaml has changed and was read", "file", path)
		}
	}
	return m.current.Load()
}

// reload reads the file again.
func (m *inference) reload(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = markOf(path)
	now, err := config.Load(path)
	if err == nil {
		m.current.Store(now)
	}
	return err
}

// close ends what openModels began, and removes the socket.
func (m *inference) close() error {
	err := m.control.Close()
	if m.listener != nil {
		err = errors.Join(err, m.listener.Close(), os.Remove(filepath.Join(m.run, attach.Socket)))
	}
	return err
}
