package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
)

// psFormatHint names what a template of clove ps may use.
const psFormatHint = `write a template of .ID, .Names, .Command, .State, .Status, .ExitCode, .CreatedAt, .RunningFor, .Ran, .Labels and .Label "KEY", for example '{{.ID}} {{.Names}}'; for JSON write --json`

// psFields are the names that a template of --format may use: docker's where it has
// them.
type psFields struct {
	ID, Names, Command, State, Status, ExitCode, CreatedAt, RunningFor, Ran, Labels string

	labels map[string]string
}

// psHeadings are the cells of a table's first line.
var psHeadings = psFields{ID: "ID", Names: "NAMES", Command: "COMMAND", State: "STATE", Status: "STATUS", ExitCode: "EXIT",
	CreatedAt: "CREATED AT", RunningFor: "CREATED", Ran: "RAN", Labels: "LABELS"}

// Label is the value of one label. The headings have no labels: there, Label returns
// the title of the column.
func (f psFields) Label(key string) string {
	if f.labels == nil {
		return strings.ToUpper(key) // the headings of a table
	}
	return printable(f.labels[key])
}

// fieldsOf is a run as templates and, shortened, the table have it. Texts of the
// author are made printable.
func fieldsOf(run agent.Run, now time.Time) psFields {
	labels := make([]string, 0, len(run.Spec.Labels))
	// Sorted: a map has another order each time.
	for _, key := range slices.Sorted(maps.Keys(run.Spec.Labels)) {
		labels = append(labels, key+"="+run.Spec.Labels[key])
	}
	f := psFields{ID: string(run.Spec.ID), Names: shown(run.Name()), Command: printable(strings.Join(run.Spec.Command, " ")), State: string(run.State),
		Status: stateName(run), CreatedAt: run.Created.Local().Format(time.RFC3339), RunningFor: age(now.Sub(run.Created)),
		Labels: printable(strings.Join(labels, ",")), labels: map[string]string{}}
	maps.Copy(f.labels, run.Spec.Labels)
	if record := run.Record; record != nil {
		f.ExitCode, f.Ran = strconv.Itoa(record.ExitCode), lasted(time.Duration(record.WallMS)*time.Millisecond)
	} else if !run.Started.IsZero() {
		f.Ran = lasted(now.Sub(run.Started).Round(time.Second))
	}
	return f
}
