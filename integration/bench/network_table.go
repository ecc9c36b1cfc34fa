package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// writeNetwork writes the second table. The row's name is printed once for all its
// peers.
func writeNetwork(text *strings.Builder, n *network) {
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "network\tunit\tpeer\tp50\tp95\tp99\tadded p50\tadded p99\tratio to the better proxy (quarters)")
	last := ""
	for _, f := range n.Figures {
		head := f.What + "\t" + f.Unit
		if head == last {
			head = "\t"
		} else {
			last = head
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%s\t%s\n", head, f.Peer, f.Values.P50, f.Values.P95, f.Values.P99, f.Added, against(f))
	}
	w.Flush()
	text.WriteString("\n")
	for _, k := range wayKinds {
		fmt.Fprintf(text, "%s: %s\n", k.name, k.does)
		if why := n.Absent[k.name]; why != "" {
			fmt.Fprintf(text, "%s was not measured: %s\n", k.name, why)
		}
	}
}

func (a *added) String() string {
	if a == nil {
		return "-\t-"
	}
	return fmt.Sprintf("%.0f\t%.0f", a.P50, a.P99)
}

// against is empty for the proxy that the others are compared with.
func against(f networkFigure) string {
	if f.Ratio == nil || f.Best == f.Peer {
		return "-"
	}
	return fmt.Sprintf("%s to %s", f.Ratio, f.Best)
}
