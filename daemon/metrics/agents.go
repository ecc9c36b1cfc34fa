package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"clove.run/clove/agent"
)

// MaxAgents bounds how many agents one answer has: each takes a call to its supervisor, and
// a line for each row of AgentTable.
const MaxAgents = 500

// Usage is what one live agent uses.
type Usage struct {
	Name  string
	Stats agent.Stats
}

// agentRow is one metric of an agent. value is nil where the host cannot
// supply it: then the metric is absent, never 0.
type agentRow struct {
	Name  string
	Kind  Kind
	Help  string
	value func(agent.Stats) *float64
}

// AgentTable is the metrics of each agent, on request, with the label agent, its name.
var AgentTable = []agentRow{
	{"clove_agent_memory_bytes", Gauge, "Memory in use, page cache included.", func(s agent.Stats) *float64 { return figure(s.MemoryBytes, 1) }},
	{"clove_agent_memory_limit_bytes", Gauge, "The memory limit.", func(s agent.Stats) *float64 { return figure(&s.Limits.MemoryBytes, 1) }},
	{"clove_agent_pids", Gauge, "Processes and threads.", func(s agent.Stats) *float64 { return figure(s.Pids, 1) }},
	{"clove_agent_disk_bytes", Gauge, "Bytes used in the writable layer.", func(s agent.Stats) *float64 { return figure(s.Usage.DiskBytes, 1) }},
	{"clove_agent_uptime_seconds", Gauge, "Since the agent's start.", func(s agent.Stats) *float64 { return figure(&s.WallMS, 1000) }},
	{"clove_agent_cpu_seconds_total", Counter, "CPU time.", func(s agent.Stats) *float64 { return figure(s.Usage.CPUMS, 1000) }},
	{"clove_agent_cpu_throttled_seconds_total", Counter, "Time for which the CPU limit throttled the agent.", func(s agent.Stats) *float64 { return figure(s.Usage.CPUThrottledMS, 1000) }},
	{"clove_agent_output_bytes_total", Counter, "Written to stdout and stderr.", func(s agent.Stats) *float64 { return figure(s.Usage.OutputBytes, 1) }},
	{"clove_agent_receive_bytes_total", Counter, "Received through the gate, DNS answers included.", func(s agent.Stats) *float64 { return figure(s.Usage.NetRxBytes, 1) }},
	{"clove_agent_transmit_bytes_total", Counter, "Sent through the gate, DNS questions included.", func(s agent.Stats) *float64 { return figure(s.Usage.NetTxBytes, 1) }},
	{"clove_agent_forks_refused_total", Counter, "Forks that the pids limit refused.", func(s agent.Stats) *float64 { return figure(s.Events.PidsMax, 1) }},
}

// leftOut is the row that says how many agents one answer leaves out.
const leftOut = "clove_agents_left_out"

const leftOutHelp = "Live agents missing from this answer: they did not respond in time, or there are too many."

// figure converts to the unit that Prometheus wants, such as milliseconds to seconds.
func figure(value *int64, per float64) *float64 {
	if value == nil {
		return nil
	}
	f := float64(*value) / per
	return &f
}

// live collects the agents of one answer.
type live struct {
	agents  []Usage
	leftOut int
}

// Describe implements prometheus.Collector. It names nothing, which makes the collector an
// unchecked one: its metrics differ from answer to answer, and have a registry of their own.
func (l live) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (l live) Collect(to chan<- prometheus.Metric) {
	types := map[Kind]prometheus.ValueType{Counter: prometheus.CounterValue, Gauge: prometheus.GaugeValue}
	for _, row := range AgentTable {
		description := prometheus.NewDesc(row.Name, row.Help, []string{"agent"}, nil)
		for _, a := range l.agents {
			if value := row.value(a.Stats); value != nil {
				to <- prometheus.MustNewConstMetric(description, types[row.Kind], *value, a.Name)
			}
		}
	}
	to <- prometheus.MustNewConstMetric(prometheus.NewDesc(leftOut, leftOutHelp, nil, nil), prometheus.GaugeValue, float64(l.leftOut))
}
