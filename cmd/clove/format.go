package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"
)

const flagFormat = "format"

// listTemplate is a --format of a command that lists something.
type listTemplate struct {
	*template.Template
	table    bool // with headings, in columns
	headings any  // a row of the list, with the titles of the columns
}

// formatOf is the --format of a command line; nil without one. hint names what a template may
// use.
func formatOf(c *cli.Context, headings any, hint string) (*listTemplate, error) {
	text := c.String(flagFormat)
	switch {
	case text == "":
		return nil, nil
	case c.Bool(flagJSON) || c.Bool(flagQuiet):
		return nil, invalid(flagFormat, "omit one of them", "--json and --quiet are formats of their own")
	}
	return parseFormat(text, headings, hint)
}

// parseFormat reads docker's form: a template, or "table" and a template whose
// columns are separated by tabs.
func parseFormat(text string, headings any, hint string) (*listTemplate, error) {
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
		err = parsed.Execute(io.Discard, headings)
	}
	if err != nil {
		return nil, invalid(flagFormat, hint, "%q is not a template: %v", text, err)
	}
	return &listTemplate{parsed, isTable, headings}, nil
}

// toJSON is docker's template function json.
func toJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

// print writes one line for each row, or a table.
func (t *listTemplate) print(to io.Writer, all []any) error {
	if t.table {
		all = append([]any{t.headings}, all...)
	}
	var rows [][]string
	for _, fields := range all {
		var line strings.Builder
		if err := t.Execute(&line, fields); err != nil {
			return invalid(flagFormat, "--help shows an example", "%v", err)
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
