package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/tools"
)

// wordsTool is the example of docs/tools.md.
const wordsTool = `name: words
description: Counts the words of a file.
arguments:
  type: object
  properties:
    path: {type: string}
  required: [path]
  additionalProperties: false
run: [wc, -w, "{path}"]
timeout: 10s
costs: {reads: 1}
read_only: true
`

func TestToolAdd(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(methods.ToolAdd.Name, api.ToolResult{Tool: api.KeptTool{Definition: tools.Definition{Tool: tools.Tool{Name: "words"}}}})
	status, stdout, stderr := b.clove("tool", "add", b.file("words.yaml", wordsTool, 0o644))
	var asked api.ToolAddParams
	f.heard(methods.ToolAdd.Name, &asked)
	d := asked.Tool
	if status != 0 || stdout != "words\n" || d.Kind != tools.KindCommand || d.Place != tools.PlaceAgent || len(d.Command) != 3 || d.Timeout != 10*time.Second || d.Costs["reads"] != 1 || d.Annotations.ReadOnly == nil || !*d.Annotations.ReadOnly {
		t.Errorf("%d, %q, %q, %+v", status, stdout, stderr, d)
	}
	var schema map[string]any
	if err := json.Unmarshal(d.Arguments, &schema); err != nil || schema["additionalProperties"] != false || len(schema["properties"].(map[string]any)) != 1 {
		t.Errorf("%s", d.Arguments)
	}
}

// A mistake in a file is one error with its reason, and cloved is not asked.
func TestToolFilesThatAreRefused(t *testing.T) {
	for name, row := range map[string]struct{ from, to, says string }{
		"a key":            {"timeout:", "time:", `there is no key "time"`},
		"a type":           {"run: [wc,", "run: {wc: 1}\nx: [wc,", ""},
		"no name":          {"name: words", "title: words", "name: \"\" is not"},
		"no description":   {"description: Counts the words of a file.", "title: words", "description is missing"},
		"a placeholder":    {"{path}\"]", "{file}\"]", "no property for {file}"},
		"a program":        {"[wc, -w", "[\"{path}\", -w", "only its arguments may have one"},
		"a time":           {"10s", "soon", "is no time"},
		"a long time":      {"10s", "48h", "at most 1h0m0s"},
		"a built-in tool":  {"name: words", "name: read", "there is a built-in tool read"},
		"a list of schema": {"  type: object\n  properties", "  type: array\n  properties", "type: object"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.cloved()
			text := strings.Replace(wordsTool, row.from, row.to, 1)
			if text == wordsTool {
				t.Fatal("the row changes nothing")
			}
			status, stdout, stderr := b.clove("tool", "add", b.file("words.yaml", text, 0o644))
			if status != 1 || stdout != "" || !strings.Contains(stderr, row.says) {
				t.Errorf("%d, %q, %q", status, stdout, stderr)
			}
		})
	}
	b := newBench(t)
	if status, _, stderr := b.clove("tool", "add", b.file("large.yaml", strings.Repeat("#", 200<<10), 0o644)); status != 1 || !strings.Contains(stderr, "more than 131072 bytes") {
		t.Errorf("%d, %q", status, stderr)
	}
	if status, _, stderr := b.clove("tool", "add", "none.yaml"); status != 1 || !strings.Contains(stderr, "no such file") {
		t.Errorf("%d, %q", status, stderr)
	}
}

func TestToolCall(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(agents.ToolCall.Name, api.ToolCallResult{Call: "c1", Text: "one\ntwo \x1b[2J\n"})
	status, stdout, stderr := b.clove("tool", "call", "worker", "read", `{"path":"/a"}`)
	var asked api.ToolCallParams
	f.heard(agents.ToolCall.Name, &asked)
	if status != 0 || !strings.HasPrefix(stdout, "one\ntwo ") || strings.Contains(stdout, "\x1b") || asked.Run != "worker" || asked.Tool != "read" || string(asked.Arguments) != `{"path":"/a"}` {
		t.Errorf("%d, %q, %q, %+v", status, stdout, stderr, asked)
	}
	f.answer(agents.ToolCall.Name, api.ToolCallResult{Failed: true, Error: "no such\x1b file", Text: "part"})
	if status, stdout, stderr = b.clove("tool", "call", "worker", "read"); status != 1 || stdout != "part\n" || !strings.Contains(stderr, "no such? file") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	if status, _, stderr = b.clove("tool", "call", "worker", "read", "path=/a"); status != 1 || !strings.Contains(stderr, "is no JSON") {
		t.Errorf("%d, %q", status, stderr)
	}
}

func TestToolShow(t *testing.T) {
	b := newBench(t)
	d, _ := tools.Builtin("exec")
	b.cloved().answer(methods.ToolShow.Name, api.ToolResult{Tool: api.KeptTool{Definition: d}})
	status, stdout, _ := b.clove("tool", "show", "exec")
	if status != 0 || !strings.Contains(stdout, "granted by name alone: tool:exec") || !strings.Contains(stdout, `"argv"`) || !strings.Contains(stdout, "timeout: 10m10s") {
		t.Errorf("%d, %s", status, stdout)
	}
}
