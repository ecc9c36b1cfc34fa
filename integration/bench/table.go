package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// table has the figures of one part of the benchmark.
type table struct {
	Name    string            `json:"name"`
	Figures []figure          `json:"figures"`
	Absent  map[string]string `json:"absent"`          // peer to why it was not measured
	Notes   []string          `json:"notes,omitempty"` // what each peer does
}

func newTable(name string) *table { return &table{Name: name, Absent: map[string]string{}} }

// figure is one line of a table.
type figure struct {
	What   string `json:"what"`
	Peer   string `json:"peer,omitempty"`
	Unit   string `json:"unit"`
	Values spread `json:"values"`
	Added  *added `json:"added,omitempty"` // beyond the direct connection, in the same unit
	Ratio  *ratio `json:"ratio,omitempty"`
	Base   string `json:"base,omitempty"` // the peer that the ratio is to
	Aim    string `json:"aim,omitempty"`
}

type added struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

const (
	unitAnswers = "per second"
	unitBytes   = "bytes"
	unitKiB     = "KiB"
	unitLatency = "µs"
	unitMS      = "ms"
	unitMiB     = "MiB"
	unitRate    = "MiB/s"
	unitTimes   = "times"
)

// single adds a line that has one value.
func (t *table) single(what, peer, unit string, value float64, aim string) {
	t.Figures = append(t.Figures, figure{What: what, Peer: peer, Unit: unit, Values: spreadOf([]float64{value}), Aim: aim})
}

// several adds a line without a peer.
func (t *table) several(what, unit string, values []float64, aim string) {
	t.Figures = append(t.Figures, figure{What: what, Unit: unit, Values: spreadOf(values), Aim: aim})
}

// describe says once below the table what a peer does.
func (t *table) describe(peer, does string) {
	if note := peer + ": " + does; !slices.Contains(t.Notes, note) {
		t.Notes = append(t.Notes, note)
	}
}

// columns are those behind the first one. A column that would be empty is left out.
var columns = []struct {
	head string
	cell func(figure) string
}{
	{"unit", func(f figure) string { return f.Unit }},
	{"peer", func(f figure) string { return f.Peer }},
	{"p50", func(f figure) string { return short(f.Values.P50) }},
	{"p95", func(f figure) string { return f.Values.percentile(f.Values.P95) }},
	{"p99", func(f figure) string { return f.Values.percentile(f.Values.P99) }},
	{"added p50", func(f figure) string { return f.Added.text(func(a added) float64 { return a.P50 }) }},
	{"added p99", func(f figure) string { return f.Added.text(func(a added) float64 { return a.P99 }) }},
	{"ratio (quarters)", figure.ratioText},
	{"aim", func(f figure) string { return f.Aim }},
}

// percentile is empty for a single value, which has none.
func (s spread) percentile(value float64) string {
	if s.Samples == 1 {
		return ""
	}
	return short(value)
}

func (a *added) text(of func(added) float64) string {
	if a == nil {
		return ""
	}
	return short(of(*a))
}

func (f figure) ratioText() string {
	if f.Ratio == nil {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f) to %s", f.Ratio.Medians, f.Ratio.Low, f.Ratio.High, f.Base)
}

// short shows three digits that count.
func short(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 1:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.3g", value)
}

// String is the table for people. The name of a measurement is printed once for all its peers.
func (t *table) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	heads, cells := []string{t.Name}, make([][]string, len(t.Figures))
	for i, f := range t.Figures {
		cells[i] = []string{f.What}
		if i > 0 && f.What == t.Figures[i-1].What {
			cells[i][0] = ""
		}
	}
	for _, c := range columns {
		if !slices.ContainsFunc(t.Figures, func(f figure) bool { return c.cell(f) != "" }) {
			continue
		}
		heads = append(heads, c.head)
		for i, f := range t.Figures {
			cells[i] = append(cells[i], cmp.Or(c.cell(f), "-"))
		}
	}
	for _, line := range append([][]string{heads}, cells...) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	w.Flush()
	fmt.Fprintln(&text)
	for _, note := range t.Notes {
		fmt.Fprintln(&text, note)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Absent)) {
		fmt.Fprintf(&text, "%s was not measured: %s\n", name, strings.ReplaceAll(t.Absent[name], "\n", "; "))
	}
	return text.String()
}
