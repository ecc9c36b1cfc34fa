package run

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
)

// infrastructure returns why a record says nothing about the agent; empty: it does. An end by
// one of its own limits is the agent's own doing.
func infrastructure(r agent.Record) string {
	switch {
	case r.Status == agent.StatusStartFailed && r.Error != nil:
		return "start failed: " + r.Error.Step + ": " + r.Error.Message
	case r.Status == agent.StatusStartFailed:
		return "start failed"
	case r.Status == agent.StatusKilled:
		return "killed: on request, or because its supervisor ended"
	case r.Status == agent.StatusOOM && r.Limit != nil && r.Limit.Name == agent.LimitHostMemory:
		return "out of memory below its limit: the host had no more"
	}
	return ""
}

// ofHost reports whether an error is a failure of the host's disk.
func ofHost(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EROFS)
}

// cause joins how the agent ended with what the grader found.
func cause(r agent.Record, grader string) string {
	end := ""
	switch {
	case r.Status == agent.StatusExited && r.ExitCode != 0:
		end = fmt.Sprintf("exit status %d", r.ExitCode)
	case r.Status == agent.StatusSignaled && r.Signal != nil:
		end = *r.Signal
	case r.Status != agent.StatusExited:
		end = string(r.Status)
	}
	switch {
	case end == "":
		return grader
	case grader == "":
		return end
	}
	return end + "; " + grader
}

// measure fills the metrics of a result that has a record.
func measure(result *bench.Result) {
	r, m := result.Record, &result.Metrics
	m.WallMS = r.WallMS
	m.CPUMS, m.ThrottledMS, m.MemoryPeak, m.PidsPeak = r.Usage.CPUMS, r.Usage.CPUThrottledMS, r.Usage.MemoryPeakBytes, r.Usage.PidsPeak
	m.IOBytes, m.NetBytes = sum(r.Usage.IOReadBytes, r.Usage.IOWriteBytes), sum(r.Usage.NetRxBytes, r.Usage.NetTxBytes)
	for _, d := range r.Denials {
		m.Denials += d.Count
	}
	if len(r.Usage.Models) == 0 {
		return
	}
	var all agent.ModelUse
	for _, u := range r.Usage.Models {
		all = all.Plus(u)
	}
	tokens := all.TokensIn + all.TokensOut + all.TokensCached
	m.Tokens, m.TokensIn, m.TokensOut, m.TokensCached = &tokens, &all.TokensIn, &all.TokensOut, &all.TokensCached
	m.ModelCalls, m.CostMicros = &all.Calls, &all.CostMicros
}

// sum of two figures is unknown if both are.
func sum(a, b *int64) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	both := *a + *b
	return &both
}

// share reads a number of processors.
func share(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 {
		return 0, &agent.Error{Kind: agent.KindInvalid, Step: "cpus", Message: fmt.Sprintf("%.64q is no number of processors", text), Hint: "write 1, or 0.5"}
	}
	return n, nil
}
