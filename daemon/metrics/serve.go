package metrics

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// Path is where the metrics are.
const Path = "/metrics"

// atOnce is how many answers may be made at the same time: each looks into the store and
// into Go's runtime, and any user of the host may ask for one.
const atOnce = 4

// AgentsOf returns the live agents that the caller may see, at most
// MaxAgents, and how many it left out.
type AgentsOf func(ctx context.Context) (agents []Usage, leftOut int)

// Handler answers GET /metrics. With agents, ?agents=1 adds what each of them
// uses; nil refuses that: the caller is not known.
func (m *Meter) Handler(agents AgentsOf) http.Handler {
	plain := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: atOnce})
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		switch wish := r.URL.Query().Get("agents"); {
		case wish == "" || wish == "0":
			plain.ServeHTTP(w, r)
		case wish != "1":
			http.Error(w, "agents must be 0 or 1", http.StatusBadRequest)
		case agents == nil:
			http.Error(w, "agents are listed on metrics_socket only: this address does not identify its callers", http.StatusForbidden)
		default:
			usage, out := agents(r.Context())
			// A registry for this answer alone: the figures belong to this caller's agents.
			each := prometheus.NewRegistry()
			each.MustRegister(live{usage, out})
			promhttp.HandlerFor(prometheus.Gatherers{m.registry, each}, promhttp.HandlerOpts{}).ServeHTTP(w, r)
		}
	})
	return mux
}

// Server is an HTTP server with narrow bounds of time and size for each request. It may be
// asked by any user of the host, and a scrape is a short request. WriteTimeout leaves time
// for the supervisors to be asked.
func Server(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 8 << 10}
}

// Write writes all metrics but the agents' own as text.
func (m *Meter) Write(to io.Writer) error {
	families, err := m.registry.Gather()
	if err != nil {
		return err
	}
	encoder := expfmt.NewEncoder(to, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return err
		}
	}
	return nil
}
