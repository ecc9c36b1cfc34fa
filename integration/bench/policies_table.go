package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// writePolicies writes the table about policies. The name of a load is printed once for all its peers.
func writePolicies(text *strings.Builder, p *policyResults) {
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "policies\tunit\tpeer\tp50\tp95\tp99\tratio to "+confinements[0].name+" (quarters)")
	last := ""
	for _, f := range slices.Concat(p.Loads, p.Answers) {
		head := f.What + "\t" + f.Unit
		if head == last {
			head = "\t"
		} else {
			last = head
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", head, f.Peer, short(f.Values.P50), short(f.Values.P95), short(f.Values.P99), f.Ratio)
	}
	w.Flush()
	text.WriteString("\n")
	for _, way := range confinements {
		fmt.Fprintf(text, "%s: %s\n", way.name, way.does)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Absent)) {
		fmt.Fprintf(text, "%s was not measured: %s\n", name, p.Absent[name])
	}
	text.WriteString("\n")
}
