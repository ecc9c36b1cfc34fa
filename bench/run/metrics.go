package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"clove.run/clove/bench"
)

// MetricsFile is where an agent writes what only it can count, below /workspace. BENCH_METRICS
// has its path. It is no part of the attempt's files.
const MetricsFile = ".bench-metrics.jsonl"

// metricsMost bounds what is read of it, and figureMost each figure of a line: no sum of as
// many lines as are read overflows.
const (
	metricsMost = 1 << 20
	figureMost  = 1 << 40
)

// withDescriptor comes before a command that finds its metrics open at descriptor 3. A
// sandbox's first process has no descriptor but its streams, so a shell opens it.
func withDescriptor() []string {
	return []string{"sh", "-c", `exec 3>>"$BENCH_METRICS"; exec "$@"`, "agent"}
}

// metricsLine is one line: what was used since the line before. Keys that are not here are
// left out, so that an agent may log more than clove reads.
type metricsLine struct {
	Steps        int64 `json:"steps"`
	ToolCalls    int64 `json:"tool_calls"`
	Retries      int64 `json:"retries"`
	ModelCalls   int64 `json:"model_calls"`
	TokensIn     int64 `json:"tokens_in"`
	TokensOut    int64 `json:"tokens_out"`
	TokensCached int64 `json:"tokens_cached"`
	CostMicros   int64 `json:"cost_micros"`
}

// takeMetrics adds the agent's own figures and removes the file. What clove's model service
// counted, no line of an agent's changes.
func takeMetrics(workspace string, m *bench.Metrics) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(MetricsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, root.RemoveAll(MetricsFile))
	}
	file, err := root.Open(MetricsFile)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(file, metricsMost))
	if err := errors.Join(err, file.Close(), root.Remove(MetricsFile)); err != nil {
		return err
	}
	sumMetrics(text, m)
	return nil
}

func sumMetrics(text []byte, m *bench.Metrics) {
	var sum metricsLine
	said := false
	for line := range bytes.Lines(text) {
		var l metricsLine
		if json.Unmarshal(line, &l) != nil || !l.sane() {
			m.Unreadable++
			continue
		}
		said = true
		sum.Steps += l.Steps
		sum.ToolCalls += l.ToolCalls
		sum.Retries += l.Retries
		sum.ModelCalls += l.ModelCalls
		sum.TokensIn += l.TokensIn
		sum.TokensOut += l.TokensOut
		sum.TokensCached += l.TokensCached
		sum.CostMicros += l.CostMicros
	}
	if !said {
		return
	}
	m.Steps, m.ToolCalls, m.Retries = &sum.Steps, &sum.ToolCalls, &sum.Retries
	if m.ModelCalls == nil {
		tokens := sum.TokensIn + sum.TokensOut + sum.TokensCached
		m.ModelCalls, m.CostMicros, m.Tokens = &sum.ModelCalls, &sum.CostMicros, &tokens
		m.TokensIn, m.TokensOut, m.TokensCached = &sum.TokensIn, &sum.TokensOut, &sum.TokensCached
		m.Own = true
	}
}

func (l metricsLine) sane() bool {
	for _, n := range []int64{l.Steps, l.ToolCalls, l.Retries, l.ModelCalls, l.TokensIn, l.TokensOut, l.TokensCached, l.CostMicros} {
		if n < 0 || n > figureMost {
			return false
		}
	}
	return true
}
