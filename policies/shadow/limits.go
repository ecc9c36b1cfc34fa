package shadow

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// Limits returns the limits and budgets of a spec's shadow that the run exceeded. charged is
// what a run's own budgets counted, by dimension. unknown are budgets that were not counted.
func Limits(spec agent.Spec, record agent.Record, charged map[string]int64) (exceeded []agent.ShadowLimit, unknown []string) {
	m := measure{spec: spec.Shadowed(), record: record}
	m.limits()
	m.network()
	m.refusals()
	m.budgets(charged)
	return m.exceeded, m.unknown
}

type measure struct {
	spec     agent.Spec // the shadow's
	record   agent.Record
	exceeded []agent.ShadowLimit
	unknown  []string
}

// add compares a peak with a limit; 0 is no limit. A peak that this host does not count is nil.
func (m *measure) add(place string, limit int64, peak *int64) {
	if limit > 0 && peak != nil && *peak > limit {
		m.exceeded = append(m.exceeded, agent.ShadowLimit{Place: place, Value: limit, Peak: *peak})
	}
}

func (m *measure) limits() {
	l, u := m.spec.Limits, m.record.Usage
	m.add("limits.memory", l.MemoryBytes, u.MemoryPeakBytes)
	m.add("limits.pids", l.Pids, u.PidsPeak)
	m.add("limits.cpu_time", milliseconds(l.CPUTime), u.CPUMS)
	m.add("limits.timeout", milliseconds(l.WallClock), &m.record.WallMS)
	m.add("limits.output", l.OutputBytes, u.OutputBytes)
	m.add("limits.disk", l.DiskBytes, u.DiskBytes)
}

// milliseconds rounds up, so that a duration within the limit is never above it.
func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// network: without a gate nothing was counted.
func (m *measure) network() {
	use := m.record.Network
	if use == nil || !m.spec.Gated() {
		return
	}
	m.add("network.bytes", m.spec.Egress.Limits.Bytes, sum(m.record.Usage.NetRxBytes, m.record.Usage.NetTxBytes))
	m.add("network.connections", int64(m.spec.Egress.Limits.Connections), &use.ConnectionsPeak)
}

// refusals are those of the run's own policy, which the shadow has as well, and its own.
func (m *measure) refusals() {
	what, after, err := m.spec.Kernel.Denial()
	if err != nil || what == "deny" || m.record.Shadow == nil {
		return
	}
	all := m.record.Shadow.Refused
	for _, d := range m.record.Denials {
		all += d.Count
	}
	if all >= int64(after) {
		m.exceeded = append(m.exceeded, agent.ShadowLimit{Place: "on_denial", Value: int64(after), Peak: all})
	}
}

// budgets prefers what the run's own budgets counted, over all its starts, to what this start
// used.
func (m *measure) budgets(charged map[string]int64) {
	used := usedBy(m.record)
	for _, text := range m.spec.Kernel.Budgets {
		limit, err := budget.ParseLimit(text)
		if err != nil {
			continue // it was checked at the start
		}
		place := "budgets." + string(limit.Dimension)
		peak, known := charged[string(limit.Dimension)]
		if !known {
			peak, known = used[limit.Dimension]
		}
		switch {
		case !known:
			m.unknown = append(m.unknown, place)
		case peak > limit.Granted: // a budget of 0 is one, too
			m.exceeded = append(m.exceeded, agent.ShadowLimit{Place: place, Value: limit.Granted, Peak: peak})
		}
	}
}

// usedBy is what a record counts of the dimensions of clove's own.
func usedBy(record agent.Record) map[budget.Dimension]int64 {
	u := record.Usage
	var all agent.ModelUse
	for _, model := range u.Models {
		all = all.Plus(model)
	}
	used := map[budget.Dimension]int64{
		budget.Tokens: all.TokensIn + all.TokensOut, budget.TokensIn: all.TokensIn, budget.TokensOut: all.TokensOut,
		budget.TokensCached: all.TokensCached, budget.CostMicros: all.CostMicros, budget.ModelCalls: all.Calls, budget.Wall: record.WallMS,
	}
	for dimension, figure := range map[budget.Dimension]*int64{
		budget.CPU: u.CPUMS, budget.WriteBytes: u.IOWriteBytes, budget.NetBytes: sum(u.NetRxBytes, u.NetTxBytes),
	} {
		if figure != nil {
			used[dimension] = *figure
		}
	}
	return used
}

// sum is nil where neither was counted.
func sum(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	all := *a + *b
	return &all
}
