package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/daemon/supervisor"
)

// Scrapes are the listeners of the metrics; both may be absent.
type Scrapes struct {
	Address net.Listener      // TCP: the caller is unknown
	Socket  *net.UnixListener // for root and the group
}

// ListenScrapes makes the listeners that the configuration asks for. The
// caller holds the Lock.
func ListenScrapes(config Config) (s Scrapes, err error) {
	if config.MetricsAddress != "" {
		if s.Address, err = net.Listen("tcp", config.MetricsAddress); err != nil {
			return s, &agent.Error{Kind: agent.KindBusy, Step: "metrics_address", Message: "cannot listen on " + config.MetricsAddress, Err: err,
				Hint: "name another port in cloved's configuration"}
		}
		// Any process on the host may connect, agents with --network host too.
		s.Address = netutil.LimitListener(s.Address, maxScrapers)
	}
	if config.MetricsSocket != "" {
		if s.Socket, _, err = Listen(config.MetricsSocket, config.Group); err != nil {
			return s, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// maxScrapers bounds the connections of unknown callers.
const maxScrapers = 32

// close closes those listeners that were made.
func (s Scrapes) close() error {
	var errs []error
	if s.Address != nil {
		errs = append(errs, s.Address.Close())
	}
	if s.Socket != nil {
		errs = append(errs, s.Socket.Close())
	}
	return errors.Join(errs...)
}

// scrape serves the metrics until ctx ends.
func (d *Daemon) scrape(ctx context.Context, s Scrapes, group int) {
	var all sync.WaitGroup
	serve := func(server *http.Server, listener net.Listener) {
		stop := context.AfterFunc(ctx, func() { server.Close() })
		all.Go(func() {
			defer stop()
			if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
				d.log.Error("the metrics server has stopped", "address", listener.Addr().String(), "error", err)
			}
		})
	}
	if s.Address != nil {
		serve(metrics.Server(d.meter.Handler(nil)), s.Address)
	}
	if s.Socket != nil {
		server := metrics.Server(d.membersOnly(group, d.meter.Handler(d.usageOf)))
		// Once for each connection: its peer does not change with its requests.
		server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
			peer, err := peerOf(conn.(*net.UnixConn))
			if err != nil {
				return ctx
			}
			return context.WithValue(ctx, scraper{}, peer)
		}
		serve(server, s.Socket)
	}
	all.Wait()
}

// scraper is the key of the caller in a request's context.
type scraper struct{}

// membersOnly refuses a caller that could not connect to the API. The socket's mode
// does the same, but a connected socket can be passed to another process; the kernel
// names the process that connected.
func (d *Daemon) membersOnly(group int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, known := r.Context().Value(scraper{}).(caller)
		if !known || !peer.member(group) {
			http.Error(w, "you may not use cloved: become a member of its group, or use sudo", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Asking supervisors for what their agents use.
const (
	askAtOnce = 16
	askTime   = 5 * time.Second // for all of them
)

// usageOf asks the supervisors of the live agents that the caller sees. Those that do not
// answer in time are counted as left out: one that hangs must not cost the others' figures.
func (d *Daemon) usageOf(ctx context.Context) (agents []metrics.Usage, leftOut int) {
	peer, known := ctx.Value(scraper{}).(caller)
	if !known || d.cache.refresh() != nil {
		return nil, 0
	}
	runs := d.cache.all(func(run *agent.Run) bool {
		return run.State == agent.StateRunning && run.Spec.Detached && peer.sees(run)
	})
	if leftOut = max(0, len(runs)-metrics.MaxAgents); leftOut > 0 {
		runs = runs[leftOut:] // the oldest stay: the same ones each time
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	places := make(chan struct{}, askAtOnce)
	var all sync.WaitGroup
	var mu sync.Mutex // guards agents and leftOut
	for _, run := range runs {
		all.Go(func() {
			// Each call is a connection and a supervisor that measures: not hundreds of
			// them at once.
			places <- struct{}{}
			defer func() { <-places }()
			var result api.StatsResult
			err := supervisor.Call(ctx, d.options.Paths.Run, run.Spec.ID, methods.RunStats.Name, api.RunParams{Run: string(run.Spec.ID)}, &result)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				agents = append(agents, metrics.Usage{Name: run.Name().For(peer.owner.UID), Stats: result.Stats})
			case agent.KindOf(err) != agent.KindConflict: // a conflict: the run has ended meanwhile
				leftOut++
			}
		})
	}
	all.Wait()
	return agents, leftOut
}
