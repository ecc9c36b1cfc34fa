package metrics

import (
	"cmp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Sample is one value of a gauge, with its labels in the table's order.
type Sample struct {
	Name   string
	Labels []string
	Value  float64
}

// Meter holds cloved's counters. Its methods are safe from any goroutine.
type Meter struct {
	registry   *prometheus.Registry
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec

	mu    sync.Mutex             // guards the following
	since map[agent.ID]time.Time // when a run that has not started yet was queued, or left the queue
}

// New makes a meter at 0. now is asked for the gauges at each scrape; one that
// it leaves out is absent then.
func New(version string, now func() []Sample) *Meter {
	m := &Meter{registry: prometheus.NewRegistry(), counters: map[string]*prometheus.CounterVec{},
		histograms: map[string]*prometheus.HistogramVec{}, since: map[agent.ID]time.Time{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauges := gauges{descriptions: map[string]*prometheus.Desc{}, now: func() []Sample {
		return append(now(), Sample{BuildInfo, []string{version, runtime.Version(), strconv.Itoa(api.Version)}, 1})
	}}
	for _, row := range Table {
		m.add(row, gauges)
	}
	m.registry.MustRegister(gauges)
	return m
}

// add registers a row. The values of a closed set are there from the
// beginning: a rate needs the 0 before the first.
func (m *Meter) add(row Metric, g gauges) {
	var labels []string
	for _, l := range row.Labels {
		labels = append(labels, l.Name)
	}
	switch row.Kind {
	case Counter:
		vector := prometheus.NewCounterVec(prometheus.CounterOpts{Name: row.Name, Help: row.Help}, labels)
		m.counters[row.Name] = vector
		m.registry.MustRegister(vector)
		for _, values := range closed(row.Labels) {
			vector.WithLabelValues(values...)
		}
	case Histogram:
		vector := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: row.Name, Help: row.Help, Buckets: row.Buckets}, labels)
		m.histograms[row.Name] = vector
		m.registry.MustRegister(vector)
		if len(labels) == 0 {
			vector.WithLabelValues()
		}
	case Gauge:
		g.descriptions[row.Name] = prometheus.NewDesc(row.Name, row.Help, labels, nil)
	}
}

// closed are all combinations of the values of labels; none, where one has no closed set of them.
func closed(labels []Label) [][]string {
	all := [][]string{{}}
	for _, l := range labels {
		var longer [][]string
		for _, before := range all {
			for _, value := range l.Values {
				longer = append(longer, append(slices.Clone(before), value))
			}
		}
		all = longer
	}
	return all
}

// gauges are collected at each scrape, and hold no values.
type gauges struct {
	descriptions map[string]*prometheus.Desc
	now          func() []Sample
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range g.descriptions {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	for _, s := range g.now() {
		to <- prometheus.MustNewConstMetric(g.descriptions[s.Name], prometheus.GaugeValue, s.Value, s.Labels...)
	}
}

// count adds to a counter of the table. An unknown name panics: it is a mistake in the
// code.
func (m *Meter) count(name string, n float64, labels ...string) {
	m.counters[name].WithLabelValues(labels...).Add(max(n, 0)) // a counter that goes back panics
}

// observe adds a time to a histogram of the table. Where the clock was set meanwhile, the
// time may be below 0, which counts as 0.
func (m *Meter) observe(name string, took time.Duration, labels ...string) {
	m.histograms[name].WithLabelValues(labels...).Observe(max(took, 0).Seconds())
}

// Happened counts one event. The caller passes events in order, each once.
func (m *Meter) Happened(o agent.RunEvent) {
	switch o.Kind {
	case agent.RunQueued:
		m.lap(o)
	case agent.RunRequeued:
		m.count(restarts, 1)
		m.lap(o)
	case agent.RunStarting:
		if waited, known := m.lap(o); known {
			m.observe(queueSeconds, waited)
		}
	case agent.RunStarted:
		m.count(starts, 1)
		if took, known := m.lap(o); known {
			m.observe(startSeconds, took)
		}
		m.forget(o.ID)
	case agent.RunGivenUp:
		m.count(giveUps, 1)
	case agent.RunBudgetWarned, agent.RunBudgetEnded, agent.RunBudgetPaused:
		m.count(budgetMarks, 1, string(o.Kind))
	case agent.RunLost:
		m.count(lost, 1)
		m.ended(o)
	case agent.RunEnded:
		m.ended(o)
	}
}

// lap returns how long ago the run's last lap was, and begins the next. Times are the
// events' own, so what other processes did is measured as well; known is false for a run
// that was queued before this cloved.
func (m *Meter) lap(o agent.RunEvent) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.since[o.ID]
	m.since[o.ID] = o.Time
	return o.Time.Sub(before), known
}

// forget drops a run that started or ended, or the map would grow with every run.
func (m *Meter) forget(id agent.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.since, id)
}

// ended counts an end by what the event says of it: with --rm there is no record to read.
func (m *Meter) ended(o agent.RunEvent) {
	m.forget(o.ID)
	m.count(ends, 1, string(o.Status))
	sum := cmp.Or(o.Sum, &agent.Sum{}) // one that an older clove wrote has none
	limit := sum.Limit
	// The disk's other limit: the label has one value for both.
	if limit == agent.LimitDiskFiles {
		limit = agent.ControlDisk
	}
	if o.Status == agent.StatusBudget {
		limit = budgetLimit
	}
	if limit != "" {
		m.count(limitHits, 1, limit)
	}
	// Refused forks do not end a run: they count beside the limit that did.
	if sum.PidsMax > 0 {
		m.count(limitHits, 1, agent.ControlPids)
	}
	m.count(forksRefused, float64(sum.PidsMax))
	m.count(cpuSeconds, float64(sum.CPUMS)/1000)
	m.count(denials, float64(sum.Refused))
	m.count(gateReceived, float64(sum.NetRxBytes))
	m.count(gateSent, float64(sum.NetTxBytes))
	m.count(gateOpened, float64(sum.Connections))
}

// Unseen counts n events that were dropped before they were read.
func (m *Meter) Unseen(n uint64) { m.count(unseen, float64(n)) }

// Dropped counts n events that a reader missed because it was too slow.
func (m *Meter) Dropped(n uint64) { m.count(dropped, float64(n)) }

// Called counts an answered request; code is Done or an error's word.
func (m *Meter) Called(method, code string, took time.Duration) {
	method = methodOf(method)
	m.count(requests, 1, method, code)
	if row, known := methods.Find(method); known && row.Shape == api.ShapeCall {
		m.observe(requestSeconds, took, method)
	}
}

// Decided counts a call about grants and budgets; err is nil or its error.
func (m *Meter) Decided(caller, method string, err *api.Error, took time.Duration) {
	code := Done
	if err != nil {
		code = err.Data.Word
		rule := ruleWord(err.Data.Rule)
		if !slices.Contains(Rules, rule) {
			rule = otherRule
		}
		m.count(kernelRefusals, 1, rule)
	}
	m.count(kernelCalls, 1, caller, methodOf(method), code)
	m.observe(kernelSeconds, took, caller)
}

// Asked counts a question to people that is new, or has ended.
func (m *Meter) Asked(kind, outcome string) { m.count(approvalsTotal, 1, kind, outcome) }

// Refused counts a connection that was not let in.
func (m *Meter) Refused(word string) { m.count(refusals, 1, word) }

// Committed counts a change of the store, and how long it took.
func (m *Meter) Committed(took time.Duration) { m.observe(commitSeconds, took) }

// StoreFailed counts a use of the store that failed for the store's own sake.
func (m *Meter) StoreFailed() { m.count(storeErrors, 1) }
