package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"clove.run/clove/agent"
)

const flagFormat = "format"

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

// fieldsOf shows a run like its row of the table, but uncut. What the author of an
// agent wrote is made printable.
func fieldsOf(run agent.Run, now time.Time) psFields {
	row := psRow(run, now)
	labels := make([]string, 0, len(run.Spec.Labels))
	// Sorted: a map has another order each time.
	for _, key := range slices.Sorted(maps.Keys(run.Spec.Labels)) {
		labels = append(labels, key+"="+run.Spec.Labels[key])
	}
	f := psFields{ID: string(run.Spec.ID), Names: row[nameColumn], Command: printable(strings.Join(run.Spec.Command, " ")), State: string(run.State),
		Status: stateWord(run), CreatedAt: run.Created.Local().Format(time.RFC3339), RunningFor: row[4], Ran: row[5],
		Labels: printable(strings.Join(labels, ",")), labels: map[string]string{}}
	maps.Copy(f.labels, run.Spec.Labels)
	if run.Record != nil {
		f.ExitCode = strconv.Itoa(run.Record.ExitCode)
	}
	return f
}

// psTemplate is a --format.
type psTemplate struct {
	*template.Template
	table bool // with headings, in columns
}

// parseFormat reads docker's form: a template, or the word table and a template whose
// columns are separated by tabs.
func parseFormat(text string) (*psTemplate, error) {
	const hint = `write a template of .ID, .Names, .Command, .State, .Status, .ExitCode, .CreatedAt, .RunningFor, .Ran, .Labels and .Label "KEY", for example '{{.ID}} {{.Names}}'; for JSON write --json`
	body, isTable := strings.CutPrefix(text, "table ")
	if body == "json" || body == "table" {
		return nil, invalid(flagFormat, hint, "%q is no template", text)
	}
	// A shell passes \t as two characters; docker replaces them, too.
	body = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(body)
	parsed, err := template.New("").Funcs(template.FuncMap{"json": toJSON}).Parse(body)
	if err == nil {
		// Parse does not know the fields: a name that does not exist is only found by
		// executing.
		err = parsed.Execute(io.Discard, psHeadings)
	}
	if err != nil {
		return nil, invalid(flagFormat, hint, "%q is not a template: %v", text, err)
	}
	return &psTemplate{parsed, isTable}, nil
}

// toJSON is docker's template function json.
func toJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

// print writes one line for each run, or a table.
func (t *psTemplate) print(to io.Writer, runs []agent.Run, now time.Time) error {
	all := make([]psFields, 0, len(runs)+1)
	if t.table {
		all = append(all, psHeadings)
	}
	for _, run := range runs {
		all = append(all, fieldsOf(run, now))
	}
	var rows [][]string
	for _, fields := range all {
		var line strings.Builder
		if err := t.Execute(&line, fields); err != nil {
			return invalid(flagFormat, "clove ps --help", "%v", err)
		}
		if t.table {
			rows = append(rows, strings.Split(line.String(), "\t"))
			continue
		}
		if _, err := fmt.Fprintln(to, line.String()); err != nil {
			return err
		}
	}
	return printTable(to, rows)
}
