package learn

import (
	"cmp"
	"encoding/json"
	"slices"

	"clove.run/clove/agent"
)

// Merge folds two observations of one agent: what either used, and the larger of two peaks.
// Both must have been given the same.
func Merge(a, b Observation) (Observation, error) {
	if a.Under != b.Under {
		return a, invalid("learn both under one policy", "one run was under %s, another under %s", a.Under, b.Under)
	}
	if place := differs(a, b); place != "" {
		return a, invalid("learn both with the same flags", "the runs were given something else: %s", place)
	}
	m := a
	m.Runs = append(slices.Clone(a.Runs), b.Runs...)
	m.Executed = append(slices.Clone(a.Executed), b.Executed...)
	m.Written = append(slices.Clone(a.Written), b.Written...)
	m.Read = append(slices.Clone(a.Read), b.Read...)
	m.Folders = append(slices.Clone(a.Folders), b.Folders...)
	m.Reads = a.Reads || b.Reads
	m.Calls = append(slices.Clone(a.Calls), b.Calls...)
	m.Targets = append(slices.Clone(a.Targets), b.Targets...)
	m.Incomplete = append(slices.Clone(a.Incomplete), b.Incomplete...)
	m.Programs = append(slices.Clone(a.Programs), b.Programs...)
	m.Unlistable = append(slices.Clone(a.Unlistable), b.Unlistable...)
	m.Listed = append(slices.Clone(a.Listed), b.Listed...)
	m.ProgramsKnown = a.ProgramsKnown && b.ProgramsKnown
	m.CallsKnown = a.CallsKnown && b.CallsKnown
	m.Peaks = largest(a.Peaks, b.Peaks)
	if m = m.sorted(); len(m.Runs) > mostRuns {
		return a, invalid("merge fewer", "there are more than %d runs", mostRuns)
	}
	return m, nil
}

// differs names a value that only one of them was given; empty: they were given the same.
func differs(a, b Observation) string {
	values := map[string]string{}
	for _, v := range a.Given.Written() {
		values[v.Key] = v.Text
	}
	for _, v := range b.Given.Written() {
		if values[v.Key] != v.Text {
			return v.Key
		}
		delete(values, v.Key)
	}
	for key := range values {
		return key
	}
	return ""
}

func largest(a, b agent.ObservedPeaks) agent.ObservedPeaks {
	return agent.ObservedPeaks{MemoryBytes: max(a.MemoryBytes, b.MemoryBytes), Pids: max(a.Pids, b.Pids), CPUMS: max(a.CPUMS, b.CPUMS),
		WallMS: max(a.WallMS, b.WallMS), OutputBytes: max(a.OutputBytes, b.OutputBytes), DiskBytes: max(a.DiskBytes, b.DiskBytes),
		ShmBytes: max(a.ShmBytes, b.ShmBytes), Descriptors: max(a.Descriptors, b.Descriptors), Connections: max(a.Connections, b.Connections)}
}

// sorted is the form that every observation has: sorted lists without repetitions, within the
// bounds. The smallest of a union are the smallest of the smallest, so the order of merges
// does not matter.
func (o Observation) sorted() Observation {
	over := false
	texts := func(list []string, most int) []string {
		kept, more := bounded(list, cmp.Compare[string], most)
		over = over || more
		return kept
	}
	o.Executed, o.Written, o.Read = texts(o.Executed, agent.MostObservedPaths), texts(o.Written, agent.MostObservedPaths), texts(o.Read, agent.MostObservedPaths)
	o.Folders = texts(o.Folders, agent.MostObservedPaths)
	o.Programs, o.Listed = texts(o.Programs, agent.MostObservedPaths), texts(o.Listed, agent.MostObservedPaths)
	var more bool
	if o.Unlistable, more = bounded(o.Unlistable, agent.CompareProblems, agent.MostObservedPaths); more {
		over = true
	}
	if o.Calls, more = bounded(o.Calls, agent.CompareCalls, agent.MostObservedCalls); more {
		over = true
	}
	flags := map[agent.ObservedTarget]agent.ObservedTarget{}
	for _, t := range o.Targets {
		have := flags[t.Key()]
		t.Refused, t.Allowed = t.Refused || have.Refused, t.Allowed || have.Allowed
		flags[t.Key()] = t
	}
	o.Targets = nil
	for _, t := range flags {
		o.Targets = append(o.Targets, t)
	}
	if o.Targets, more = bounded(o.Targets, agent.CompareTargets, agent.MostObservedTargets); more {
		over = true
	}
	if over {
		o.Incomplete = append(slices.Clone(o.Incomplete), "more was used than an observation holds; the first entries are kept")
	}
	o.Incomplete, _ = bounded(o.Incomplete, cmp.Compare[string], agent.MostObservedTargets)
	o.Runs = sortedRuns(o.Runs)
	return o
}

func bounded[T comparable](list []T, order func(a, b T) int, most int) ([]T, bool) {
	set := map[T]bool{}
	for _, item := range list {
		set[item] = true
	}
	return agent.Bounded(set, order, most)
}

// sortedRuns compares runs by all that is known of them.
func sortedRuns(runs []Run) []Run {
	key := func(r Run) string {
		text, err := json.Marshal(r)
		if err != nil {
			panic(err) // such a value always encodes
		}
		return string(r.ID) + string(text)
	}
	all := slices.Clone(runs)
	slices.SortFunc(all, func(a, b Run) int { return cmp.Compare(key(a), key(b)) })
	return slices.CompactFunc(all, func(a, b Run) bool { return key(a) == key(b) })
}
