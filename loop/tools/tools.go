package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"clove.run/clove/loop/model"
)

// Done is the name of the tool that ends a turn.
const Done = "done"

// MaxResult is the most that a result has in bytes, but for a line on what was left out.
const MaxResult = 32 << 10

// Box is where tools work.
type Box struct {
	Dir string // that relative paths begin at
}

// Result is what the model gets.
type Result struct {
	Text string
	Done bool // the turn ends, with Text as its answer
}

// tool is a row of the table.
type tool struct {
	name, usage string
	parameters  string // the properties of the schema
	required    string // names, separated by blanks
	run         func(b *Box, ctx context.Context, arguments []byte) (string, error)
}

// table is in the order in which the model gets it.
var table = []tool{
	{"exec", "Run a command with /bin/sh in the workspace. The result is its output (stdout and stderr) and exit status.",
		`"command": {"type": "string"}, "timeout_seconds": {"type": "integer", "description": "default 120, at most 3600"}`,
		"command", with((*Box).exec)},
	{"read_file", "Read lines of a text file.",
		`"path": {"type": "string"}, "offset": {"type": "integer", "description": "first line, from 1"}, "limit": {"type": "integer", "description": "number of lines, default 2000"}`,
		"path", with((*Box).readFile)},
	{"write_file", "Write a file. It is made with its folders, or replaced.",
		`"path": {"type": "string"}, "content": {"type": "string"}`,
		"path content", with((*Box).writeFile)},
	{"edit", "Replace a text in a file. old must be there exactly once, or all be true.",
		`"path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"}, "all": {"type": "boolean"}`,
		"path old new", with((*Box).edit)},
	{"list", "List a folder: names, folders with a slash, and sizes in bytes.",
		`"path": {"type": "string", "description": "default: the workspace"}`,
		"", with((*Box).list)},
	{Done, "End the task. answer is what the user gets.",
		`"answer": {"type": "string"}`,
		"answer", with((*Box).done)},
}

// All are the tools for the model.
func All() []model.Tool {
	all := make([]model.Tool, len(table))
	for i, t := range table {
		required, _ := json.Marshal(strings.Fields(t.required)) // strings
		schema := fmt.Sprintf(`{"type": "object", "properties": {%s}, "required": %s, "additionalProperties": false}`, t.parameters, required)
		all[i] = model.Tool{Name: t.name, Description: t.usage, Parameters: json.RawMessage(schema)}
	}
	return all
}

// Run makes a call. Only the end of ctx is an error; all others are results.
func (b *Box) Run(ctx context.Context, call model.Function) (Result, error) {
	var names []string
	for _, t := range table {
		if t.name != call.Name {
			names = append(names, t.name)
			continue
		}
		text, err := t.run(b, ctx, []byte(call.Arguments))
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if err != nil {
			return Result{Text: "error: " + cut(err.Error())}, nil
		}
		return Result{Text: text, Done: t.name == Done}, nil
	}
	return Result{Text: fmt.Sprintf("error: there is no tool %.64q; there are %s", call.Name, strings.Join(names, ", "))}, nil
}

// with decodes a tool's arguments.
func with[A any](run func(*Box, context.Context, A) (string, error)) func(*Box, context.Context, []byte) (string, error) {
	return func(b *Box, ctx context.Context, arguments []byte) (string, error) {
		var a A
		if len(bytes.TrimSpace(arguments)) > 0 {
			decoder := json.NewDecoder(bytes.NewReader(arguments))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&a); err != nil {
				return "", fmt.Errorf("the arguments do not fit: %w", err)
			}
		}
		return run(b, ctx, a)
	}
}

// path is a path as the tools take it.
func (b *Box) path(given string) (string, error) {
	switch {
	case given == "":
		return "", errors.New("path is empty")
	case filepath.IsAbs(given):
		return given, nil
	}
	return filepath.Join(b.Dir, given), nil
}

// cut bounds a text and makes it UTF-8.
func cut(text string) string {
	if len(text) > MaxResult {
		text = fmt.Sprintf("%s\n[%d bytes left out]", text[:MaxResult], len(text)-MaxResult)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

type doneArguments struct {
	Answer string `json:"answer"`
}

// done's answer is as long as the model's answer may be.
func (b *Box) done(_ context.Context, a doneArguments) (string, error) { return a.Answer, nil }
