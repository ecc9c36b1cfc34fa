package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// writeDaemon writes the third table. A rate is one value and has no percentiles.
func writeDaemon(text *strings.Builder, figures []daemonFigure) {
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "daemon\tunit\tp50\tp95\tp99\taim")
	for _, f := range figures {
		aim := "-"
		if f.Aim > 0 {
			aim = fmt.Sprintf("%.0f", f.Aim)
		}
		if f.Values.Samples == 1 {
			fmt.Fprintf(w, "%s\t%s\t%.1f\t-\t-\t%s\n", f.What, f.Unit, f.Values.P50, aim)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%s\n", f.What, f.Unit, f.Values.P50, f.Values.P95, f.Values.P99, aim)
	}
	w.Flush()
	text.WriteString("\n")
}
