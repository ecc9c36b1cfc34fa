package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
)

// writeModels writes the fifth table. The row's name is printed once for all its peers.
func writeModels(text *strings.Builder, m *modelResults) {
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "models\tunit\tpeer\tp50\tp95\tp99\tadded p50\tadded p99\tratio to "+peerGateway+" (quarters)\taim")
	last := ""
	for _, f := range m.Figures {
		head := f.What + "\t" + f.Unit
		if head == last {
			head = "\t"
		} else {
			last = head
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", head, f.Peer, spreadText(f.Values), f.addedText(), f.Ratio, cmp.Or(f.Aim, "-"))
	}
	w.Flush()
	text.WriteString("\n")
	for _, k := range modelKinds {
		fmt.Fprintf(text, "%s: %s\n", k.name, k.does)
		if why := m.Absent[k.name]; why != "" {
			fmt.Fprintf(text, "%s was not measured: %s\n", k.name, why)
		}
	}
	text.WriteString("\n")
}

// spreadText has no percentiles of a single value.
func spreadText(s spread) string {
	if s.Samples == 1 {
		return short(s.P50) + "\t-\t-"
	}
	return short(s.P50) + "\t" + short(s.P95) + "\t" + short(s.P99)
}

func (f *modelFigure) addedText() string {
	if f.Added == nil {
		return "-\t-"
	}
	return short(f.Added.P50) + "\t" + short(f.Added.P99)
}
