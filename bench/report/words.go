package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"clove.run/clove/bench"
	"clove.run/clove/bench/stats"
)

// cellMost bounds a text of an agent's or a suite's in a table.
const cellMost = 300

// cell makes a text safe for a table of Markdown: one line, no markup, no HTML.
func cell(text string) string {
	var b strings.Builder
	for _, c := range cut(text) {
		switch {
		case c == '<' || c == '>' || c == '&': // a backslash does not help in every reader
			fmt.Fprintf(&b, "&#%d;", c)
		case strings.ContainsRune("\\`*_{}[]()#|!~", c):
			b.WriteString("\\" + string(c))
		case c == '\t' || c == '\n' || c == '\r':
			b.WriteByte(' ')
		case !strconv.IsPrint(c):
			fmt.Fprintf(&b, "\\\\u%04x", c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func cut(text string) string {
	if len(text) <= cellMost {
		return strings.ToValidUTF8(text, "?")
	}
	end := cellMost
	for !utf8.RuneStart(text[end]) && end > 0 {
		end--
	}
	return strings.ToValidUTF8(text[:end], "?") + "…"
}

// figure reads one figure of a result; ok is false if nobody counted it.
type figure func(bench.Result) (value float64, ok bool)

func wall(r bench.Result) (float64, bool) { return float64(r.Metrics.WallMS), true }

func peak(r bench.Result) (float64, bool) {
	if r.Metrics.MemoryPeak == nil {
		return 0, false
	}
	return float64(*r.Metrics.MemoryPeak), true
}

// values are a figure of all graded attempts of an agent.
func (d Data) values(agent string, of figure) (all []float64) {
	for _, r := range d.Results {
		if value, ok := of(r); ok && r.Agent == agent && r.Outcome != bench.Infrastructure {
			all = append(all, value)
		}
	}
	return all
}

func rate(r Rate) float64 {
	if r.Graded == 0 {
		return math.NaN()
	}
	return float64(r.Passed) / float64(r.Graded)
}

// Figures that nobody knows are a dash.

func percent(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

func clock(ms float64) string {
	if math.IsNaN(ms) {
		return "-"
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

func bytesText(n float64) string {
	if math.IsNaN(n) {
		return "-"
	}
	return fmt.Sprintf("%.1f MiB", n/(1<<20))
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// used are the figures that only some agents have. An agent's own count is used where clove's
// model service counted nothing.
func used() []struct {
	name string
	of   figure
} {
	in := func(unit float64, of func(bench.Metrics) *int64) figure {
		return func(r bench.Result) (float64, bool) {
			if n := of(r.Metrics); n != nil {
				return float64(*n) / unit, true
			}
			return 0, false
		}
	}
	known := func(of func(bench.Metrics) *int64) figure { return in(1, of) }
	return []struct {
		name string
		of   figure
	}{
		{"CPU, s", in(1e3, func(m bench.Metrics) *int64 { return m.CPUMS })},
		{"throttled, s", in(1e3, func(m bench.Metrics) *int64 { return m.ThrottledMS })},
		{"tokens", known(func(m bench.Metrics) *int64 { return m.Tokens })},
		{"model calls", known(func(m bench.Metrics) *int64 { return m.ModelCalls })},
		{"cost, $", in(1e6, func(m bench.Metrics) *int64 { return m.CostMicros })},
		{"tool calls", known(func(m bench.Metrics) *int64 { return m.ToolCalls })},
		{"steps", known(func(m bench.Metrics) *int64 { return m.Steps })},
		{"retries", known(func(m bench.Metrics) *int64 { return m.Retries })},
		{"denials", func(r bench.Result) (float64, bool) { return float64(r.Metrics.Denials), true }},
	}
}

// medians are a table of what the attempts of each agent used; its first row is the head.
func (d Data) medians() [][]string {
	head := []string{"agent"}
	for _, f := range used() {
		head = append(head, f.name)
	}
	rows := [][]string{head}
	for _, r := range d.Agents() {
		row := []string{r.Agent}
		for _, f := range used() {
			row = append(row, plain(stats.Quantile(0.5, d.values(r.Agent, f.of))))
		}
		rows = append(rows, row)
	}
	return rows
}

func plain(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}
