package report

import (
	"encoding/csv"
	"strconv"
	"strings"

	"clove.run/clove/bench"
)

// column is one of the CSV file.
type column struct {
	name string
	of   func(bench.Result) string
}

func columns() []column {
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	known := func(of func(bench.Metrics) *int64) func(bench.Result) string {
		return func(r bench.Result) string {
			if n := of(r.Metrics); n != nil {
				return integer(*n)
			}
			return ""
		}
	}
	return []column{
		{"attempt", func(r bench.Result) string { return r.Attempt }},
		{"task", func(r bench.Result) string { return r.Task }},
		{"agent", func(r bench.Result) string { return r.Agent }},
		{"seed", func(r bench.Result) string { return integer(r.Seed) }},
		{"outcome", func(r bench.Result) string { return string(r.Outcome) }},
		{"score", func(r bench.Result) string { return strconv.FormatFloat(r.Score, 'f', -1, 64) }},
		{"cause", func(r bench.Result) string { return r.Cause }},
		{"tries", func(r bench.Result) string { return strconv.Itoa(r.Tries) }},
		{"wall_ms", func(r bench.Result) string { return integer(r.Metrics.WallMS) }},
		{"cpu_ms", known(func(m bench.Metrics) *int64 { return m.CPUMS })},
		{"throttled_ms", known(func(m bench.Metrics) *int64 { return m.ThrottledMS })},
		{"memory_peak_bytes", known(func(m bench.Metrics) *int64 { return m.MemoryPeak })},
		{"pids_peak", known(func(m bench.Metrics) *int64 { return m.PidsPeak })},
		{"io_bytes", known(func(m bench.Metrics) *int64 { return m.IOBytes })},
		{"net_bytes", known(func(m bench.Metrics) *int64 { return m.NetBytes })},
		{"denials", func(r bench.Result) string { return integer(r.Metrics.Denials) }},
		{"tokens", known(func(m bench.Metrics) *int64 { return m.Tokens })},
		{"model_calls", known(func(m bench.Metrics) *int64 { return m.ModelCalls })},
		{"cost_micros", known(func(m bench.Metrics) *int64 { return m.CostMicros })},
		{"tool_calls", known(func(m bench.Metrics) *int64 { return m.ToolCalls })},
		{"retries", known(func(m bench.Metrics) *int64 { return m.Retries })},
		{"steps", known(func(m bench.Metrics) *int64 { return m.Steps })},
	}
}

// CSV has a line for each attempt. A figure that nobody counted is empty.
func CSV(d Data) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	all := columns()
	line := make([]string, len(all))
	for i, c := range all {
		line[i] = c.name
	}
	if err := w.Write(line); err != nil {
		return "", err
	}
	for _, r := range d.Results {
		for i, c := range all {
			line[i] = harmless(c.of(r))
		}
		if err := w.Write(line); err != nil {
			return "", err
		}
	}
	w.Flush()
	return b.String(), w.Error()
}

// harmless keeps spreadsheets from executing a text of an agent's as a formula. A negative
// number is none.
func harmless(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err != nil && text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
