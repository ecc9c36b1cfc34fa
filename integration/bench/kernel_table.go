package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// writeKernel writes the fourth table. The row's name is printed once for all its peers.
func writeKernel(text *strings.Builder, s *shared) {
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what agents share\tunit\tpeer\tp50\tp95\tp99\tratio to the first (quarters)\taim")
	last := ""
	for _, f := range s.Figures {
		head := f.What + "\t" + f.Unit
		if head == last {
			head = "\t"
		} else {
			last = head
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", head, f.Peer, short(f.Values.P50), short(f.Values.P95), short(f.Values.P99), f.Ratio, cmp.Or(f.Aim, "-"))
	}
	w.Flush()
	text.WriteString("\n")
	for _, k := range ledgerKinds {
		if slices.ContainsFunc(s.Figures, func(f kernelFigure) bool { return f.Peer == k.name }) {
			fmt.Fprintf(text, "%s: %s\n", k.name, k.does)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Absent)) {
		fmt.Fprintf(text, "%s was not measured: %s\n", name, s.Absent[name])
	}
	text.WriteString("\n")
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
