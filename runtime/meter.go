package runtime

import (
	"context"
	"maps"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/kernel/budget"
)

// meterEvery is how often the counters of the Linux kernel are read for a budget. What
// follows from a spent one is done within a second and a half.
const meterEvery = 500 * time.Millisecond

// checkMeters refuses budgets of what this host does not count while the agent runs.
func checkMeters(spec agent.Spec, v2 bool) error {
	for _, text := range spec.Kernel.Budgets {
		limit, err := budget.ParseLimit(text)
		if err != nil {
			return err
		}
		if limit.Dimension == budget.WriteBytes && !v2 {
			return &agent.Error{Kind: agent.KindUnenforceable, Step: "--budget", Message: "write_bytes is counted on cgroup v2 only",
				Hint: "use --disk, which bounds what the agent may keep"}
		}
		if limit.Dimension == budget.NetBytes && spec.Network == agent.NetworkHost {
			return &agent.Error{Kind: agent.KindUnenforceable, Step: "--budget", Message: "net_bytes is not counted in the host's network",
				Hint: "use another --network"}
		}
	}
	return nil
}

// readMeters returns what the Linux kernel has counted since the agent's start, by
// dimension. A figure that is missing stays absent.
func (s *supervisor) readMeters() map[string]int64 {
	totals := map[string]int64{}
	stats, err := s.group.Stats()
	if err != nil || s.began == 0 {
		return totals // the cgroup is going: so is the agent
	}
	if stats = stats.Since(launchUse(s.seen.spent)); stats.CPU != nil {
		totals[string(budget.CPU)] = stats.CPU.Milliseconds()
	}
	if stats.IOWriteBytes != nil {
		totals[string(budget.WriteBytes)] = *stats.IOWriteBytes
	}
	totals[string(budget.Wall)] = time.Duration(boottime.NowNS() - s.began - s.share.stood(boottime.NowNS())).Milliseconds()
	if s.gate != nil {
		t := s.gate.Totals()
		totals[string(budget.NetBytes)] = t.RxBytes + t.TxBytes
	}
	return totals
}

// stood is for how long budgets have had the agent stand still, in nanoseconds.
func (s *share) stood(now int64) int64 {
	if s.paused {
		return s.stoodNS + now - s.pausedAt
	}
	return s.stoodNS
}

// meter sends readings that changed, if somebody limits what they count. It does not wait
// for the answer: the effect comes as a standing.
func (s *supervisor) meter() {
	if len(s.share.metered) == 0 || s.share.metering != nil {
		return
	}
	totals := s.readMeters()
	maps.DeleteFunc(totals, func(dimension string, total int64) bool {
		return !s.share.metered[dimension] || s.share.sent[dimension] == total
	})
	if len(totals) == 0 {
		return
	}
	answer := make(chan error, 1)
	s.share.metering = answer
	go func() {
		ctx, cancel := context.WithTimeout(s.share.ctx, meterPatience)
		defer cancel()
		answer <- s.share.kernel.Meter(ctx, s.share.run, s.share.start, totals)
	}()
	s.share.sending = totals
}

// meterPatience bounds one report of readings.
const meterPatience = 10 * time.Second

// onMetered notes which readings have arrived. What has not is sent again.
func (s *supervisor) onMetered(err error) {
	s.share.metering = nil
	if err == nil {
		maps.Copy(s.share.sent, s.share.sending)
	}
}

// meterLast reports the last readings, so that the account has all of the run.
func (s *supervisor) meterLast() {
	if s.share == nil || len(s.share.metered) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.share.ctx, meterPatience)
	defer cancel()
	_ = s.share.kernel.Meter(ctx, s.share.run, s.share.start, s.readMeters()) // without cloved the account misses the last half second
}
