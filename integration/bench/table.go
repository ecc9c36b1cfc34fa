package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// table is the results for people.
func table(r *results) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, Linux %s, %d CPUs, %d rounds, load %s before and %s after\n", r.Clove, r.Kernel, r.CPUs, r.Rounds, r.Load[0], r.Load[1])
	if r.Docker != "" {
		fmt.Fprintln(&text, r.Docker)
	}
	text.WriteString("\n")
	if len(r.Figures) > 0 {
		writeRuns(&text, r)
	}
	if r.Network != nil {
		writeNetwork(&text, r.Network)
	}
	if len(r.Daemon) > 0 {
		writeDaemon(&text, r.Daemon)
	}
	if r.Shared != nil {
		writeKernel(&text, r.Shared)
	}
	if r.Models != nil {
		writeModels(&text, r.Models)
	}
	if r.Policies != nil {
		writePolicies(&text, r.Policies)
	}
	return text.String()
}

// writeRuns writes the first table: commands, memory, steps, and what each peer does.
func writeRuns(text *strings.Builder, r *results) {
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "measured (ms)\tat once\tpeer\tp50\tp95\tp99\tCPU\tratio to "+reference+" (quarters)")
	last := ""
	for _, f := range r.Figures {
		head := fmt.Sprintf("%s\t%d", f.What, f.Together)
		if head == last {
			head = "\t"
		} else {
			last = head
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%s\t%s\n", head, f.Peer, f.MS.P50, f.MS.P95, f.MS.P99, optional(f.CPUMS), f.Ratio)
	}
	w.Flush()
	if len(r.Memories) > 0 {
		writeMemories(text, r.Memories)
		writeSteps(text, r.Steps)
	}
	writePeers(text, r)
	text.WriteString("\n")
}

func optional(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *ms)
}

func (r *ratio) String() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Medians, r.Low, r.High)
}

func writeMemories(text *strings.Builder, memories []memory) {
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nhost memory beside each idle agent\tat once\tMiB\tanonymous")
	for _, m := range memories {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\n", m.Peer, m.Together, m.MiB, m.Own)
	}
	w.Flush()
}

// writeSteps puts the longest step first.
func writeSteps(text *strings.Builder, steps map[string]float64) {
	names := slices.SortedFunc(maps.Keys(steps), func(a, b string) int {
		return cmp.Or(cmp.Compare(steps[b], steps[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %.1f", name, steps[name])
	}
	fmt.Fprintf(text, "\nwhere clove's time goes, the longest first: %s\n", strings.Join(parts, ", "))
}

// writePeers says once for each peer what it does, and why it was not measured.
func writePeers(text *strings.Builder, r *results) {
	text.WriteString("\n")
	shown := map[string]bool{}
	for _, p := range slices.Concat(peers, lives, dockerPeers) {
		measured := slices.ContainsFunc(r.Figures, func(f figure) bool { return f.Peer == p.name })
		why := r.Absent[p.name]
		if shown[p.name] || !measured && why == "" {
			continue
		}
		shown[p.name] = true
		fmt.Fprintf(text, "%s does: %s\n", p.name, p.does)
		if why != "" {
			fmt.Fprintf(text, "%s was not measured: %s\n", p.name, strings.ReplaceAll(why, "\n", "; "))
		}
	}
}
