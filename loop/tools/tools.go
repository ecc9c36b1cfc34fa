package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"clove.run/clove/loop/model"
	"clove.run/clove/tools/builtin"
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
		"path", with(files((*builtin.Box).Read))},
	{"write_file", "Write a file. It is made with its folders, or replaced.",
		`"path": {"type": "string"}, "content": {"type": "string"}`,
		"path content", with(files((*builtin.Box).Write))},
	{"edit", "Replace a text in a file. old must be there exactly once, or all be true.",
		`"path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"}, "all": {"type": "boolean"}`,
		"path old new", with(files((*builtin.Box).Edit))},
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
			return Result{Text: "error: " + builtin.Cut(err.Error(), MaxResult)}, nil
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

// files is a tool that clove-tool has, too.
func files[A any](run func(*builtin.Box, context.Context, A) (string, error)) func(*Box, context.Context, A) (string, error) {
	return func(b *Box, ctx context.Context, a A) (string, error) {
		return run(&builtin.Box{Dir: b.Dir, Most: MaxResult}, ctx, a)
	}
}

// maxNames of a folder are listed.
const maxNames = 1000

type listArguments struct {
	Path string `json:"path"`
}

func (b *Box) list(ctx context.Context, a listArguments) (string, error) {
	return files((*builtin.Box).List)(b, ctx, builtin.ListArguments{Path: a.Path, Entries: maxNames, Hidden: true})
}

type doneArguments struct {
	Answer string `json:"answer"`
}

// done's answer is as long as the model's answer may be.
func (b *Box) done(_ context.Context, a doneArguments) (string, error) { return a.Answer, nil }
