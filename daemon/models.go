package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
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
	shared   shared
	run      string // cloved's run directory
}

// openModels begins to serve supervisors. A file with a mistake leaves the models that are
// built in, so that cloved starts; a reload says what is wrong again.
func (d *Daemon) openModels(ctx context.Context) error {
	m := &inference{shared: d.shared, run: d.options.Paths.Run}
	now, err := config.Load(d.config().Models)
	if err != nil {
		d.log.Error("models are not served, but those that are built in", "error", err)
		now, err = config.Parse(nil)
	}
	if err != nil {
		return err
	}
	m.current.Store(now)
	m.control = control.New(control.Options{Ledger: d.shared.kernel, Config: m.current.Load, Programs: runtime.Programs, Log: d.log,
		Secret: func(name string) (string, error) { return control.ReadSecret(d.config().Secrets, name) }})
	if m.listener, err = attach.Listen(d.options.Paths.Run); err != nil {
		return err
	}
	d.inference = m
	go attach.Accept(ctx, m.listener, m.serve)
	return nil
}

func (m *inference) methods() map[string]handler {
	return map[string]handler{
		api.MethodModelList: handle(func(c *call, _ api.Nothing) (any, error) {
			return api.ModelListResult{Models: m.control.List(c.peer.owner)}, nil
		}),
		api.MethodModelPrices: handle(func(c *call, _ api.Nothing) (any, error) {
			return api.ModelPricesResult{Prices: m.control.Prices(c.peer.owner)}, nil
		}),
		api.MethodModelTest: handle(func(c *call, p api.ModelTestParams) (any, error) { return m.control.Test(c, p.Model) }),
		api.MethodModelTop:  handle(m.top),
	}
}

// maxTop bounds the runs of model.top.
const maxTop = 100

// top is who uses models now: the runs that the caller sees.
func (m *inference) top(c *call, _ api.Nothing) (any, error) {
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

// serve serves the run that a supervisor names.
func (m *inference) serve(ctx context.Context, id agent.ID, listener *os.File) (func() []agent.ModelUse, error) {
	run, err := m.shared.run(id)
	if err != nil {
		listener.Close()
		return nil, err
	}
	return m.control.Serve(ctx, run, listener)
}

// waiting returns a run's calls of models that wait.
func (d *Daemon) waiting(run agent.ID) []api.WaitingCall {
	if d.inference == nil {
		return nil
	}
	return d.inference.control.Waiting(run)
}

// reload reads the file anew.
func (m *inference) reload(path string) error {
	now, err := config.Load(path)
	if err == nil {
		m.current.Store(now)
	}
	return err
}

// close ends what openModels began, and removes the socket.
func (m *inference) close() error {
	return errors.Join(m.listener.Close(), os.Remove(filepath.Join(m.run, attach.Socket)), m.control.Close())
}
