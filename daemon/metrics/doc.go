// Package metrics counts cloved's events and requests, for Prometheus.
//
//	events of the store      ──▶ Happened ─┐
//	API calls, commits, drops ─▶ Called, … ├─▶ registry ──▶ GET /metrics
//	states, queue, sizes ◀── asked for at each scrape ┘
//
// Table is every metric there is: the code takes its names, labels and
// buckets from there, and docs/metrics.md is drawn from it. Events of
// runs are counted from the store's numbered list, so foreground runs count
// too, and nothing is counted twice: a counter begins at 0 with its cloved.
//
// No label is unbounded: each has a closed set of values. Agents have names
// only in what Agents adds to one answer, for a caller that asked and may see
// them.
//
// It does not identify callers: package daemon listens, and decides what a caller may
// see.
package metrics
