package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"

	"clove.run/clove/agent"
	"clove.run/clove/api"
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
	}
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
