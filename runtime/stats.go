package runtime

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/boottime"
)

// Stats returns what the agent uses now.
func (l *Live) Stats() (stats agent.Stats, err error) {
	err = l.do(func() (err error) { stats, err = l.s.stats(); return err })
	return stats, err
}

func (s *supervisor) stats() (agent.Stats, error) {
	figures, err := s.group.Stats()
	if err != nil {
		return agent.Stats{}, agent.Failed("stats", err)
	}
	figures = figures.Since(launchUse(s.seen.spent))
	seen := outcome{cpu: figures.CPU, spent: s.seen.spent, output: s.pipes.written.Load()}
	if s.tree != nil {
		if used, err := s.tree.Usage(); err == nil {
			seen.diskUsed = &used.Bytes
		}
	}
	now := agent.Stats{
		Time: time.Now().UTC(), Paused: s.freezer.paused, WallMS: time.Duration(boottime.NowNS() - s.began).Milliseconds(),
		MemoryBytes: figures.MemoryBytes, Pids: figures.Pids,
		Usage: usage(seen, figures), Events: events(seen, figures), Limits: s.spec.Limits,
	}
	if s.gate != nil {
		totals := s.gate.Totals()
		now.Usage.NetRxBytes, now.Usage.NetTxBytes = &totals.RxBytes, &totals.TxBytes
	}
	return now, nil
}
