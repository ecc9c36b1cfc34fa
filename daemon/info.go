package daemon

import (
	"log/slog"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/metrics"
)

// system serves the methods about cloved itself. config and reload are functions, so that
// it sees each new configuration.
type system struct {
	options    Options
	started    time.Time
	cache      *cache
	reconciler *reconciler
	config     func() Config
	memory     memory
	reload     func() error
	meter      *metrics.Meter
	log        *slog.Logger
	shared     *shared
}

func (s system) methods() []handler {
	return []handler{
		on(methods.Info, s.info),
		on(methods.Summary, s.summary),
		on(methods.Reload, func(*request, api.Nothing) (api.Nothing, error) { return api.Nothing{}, s.reload() }),
		on(methods.Drain, s.drain),
		on(methods.Debug, s.debug),
	}
}

// info is what this cloved is, and how many runs the caller has.
func (s system) info(c *request, _ api.Nothing) (api.InfoResult, error) {
	if err := s.cache.refresh(); err != nil {
		return api.InfoResult{}, err
	}
	counts := map[agent.State]int{}
	// Only runs that the caller sees: the sum would show what others run.
	for _, run := range s.cache.list(c.peer.sees) {
		counts[run.State]++
	}
	return api.InfoResult{Version: s.options.Version, API: api.Version, PID: os.Getpid(), Started: s.started,
		Root: s.options.Paths.State, RunDir: s.options.Paths.Run, Draining: s.reconciler.drained(), Runs: counts}, nil
}

// summary is info with the numbers of all that agents share.
func (s system) summary(c *request, none api.Nothing) (result api.SummaryResult, err error) {
	if result.InfoResult, err = s.info(c, none); err != nil || s.shared == nil {
		return result, err
	}
	owner := &c.peer.owner.UID
	if c.peer.root() {
		owner = nil
	}
	result.Events = s.cache.newest()
	result.Counts, err = s.shared.kernel.Counts(owner, func(id agent.ID) bool {
		run, found := s.cache.get(id)
		return found && c.peer.sees(&run)
	})
	return result, err
}

// drain holds starts back, or lets them go on.
func (s system) drain(c *request, p api.DrainParams) (api.Nothing, error) {
	if err := s.reconciler.drain(p.On); err != nil {
		return api.Nothing{}, err
	}
	s.log.Info("drain", "on", p.On, "peer", c.peer.String())
	return api.Nothing{}, nil
}
