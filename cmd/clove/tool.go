package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/document"
	"clove.run/clove/tools"
)

func toolCommand() command {
	return command{
		task: "decide", usage: "keep tools, and see and call those of agents",
		verbs: []verb{
			{line: "clove tool add [--json] FILE", act: ask(methods.ToolAdd).fills(fillTool).shows(says(func(_ *line, r api.ToolResult) string { return r.Tool.Name }))},
			{line: "clove tool ls [--json]", act: list(methods.ToolKept).columns("TOOL", "RUN", "DESCRIPTION")},
			{line: "clove tool show [--json] TOOL", act: ask(methods.ToolShow).shows(showTool)},
			{line: "clove tool rm TOOL", act: ask(methods.ToolRemove).shows(says(func(l *line, _ api.Nothing) string { return l.args[0] }))},
			{line: "clove tool of [--json] AGENT", act: list(agents.ToolList).columns("TOOL", "DESCRIPTION")},
			{line: "clove tool call [--json] AGENT TOOL [ARGUMENTS]", act: ask(agents.ToolCall).fills(fillCall).shows(showCall)},
		},
		description: "A tool is a command with a name, a description and a JSON Schema of its arguments. An agent of yours with a grant\n" +
			"tool:TOOL may call it, over MCP or its own socket, and it runs in the agent's sandbox. add keeps one of FILE; ls lists yours\n" +
			"and those that are built in; of lists those that a running agent may call. call runs one as the agent would, with its grants and\n" +
			"its budget, and prints the result; ARGUMENTS is an object of JSON. It exits with 1 if the tool failed.",
		flags: []cli.Flag{jsonFlag("add, show, call: write an object; ls, of: an array")},
	}
}

// toolFile is what people write of a tool.
type toolFile struct {
	Name        string           `json:"name"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Arguments   map[string]any   `json:"arguments"`
	Result      map[string]any   `json:"result"`
	Run         []string         `json:"run"`
	Timeout     string           `json:"timeout"`
	Costs       map[string]int64 `json:"costs"`
	ReadOnly    *bool            `json:"read_only"`
	Destructive *bool            `json:"destructive"`
	Idempotent  *bool            `json:"idempotent"`
	OpenWorld   *bool            `json:"open_world"`
}

// fillTool reads the file of a tool.
func fillTool(l *line, p *api.ToolAddParams) error {
	text, err := readToolFile(l.args[0])
	if err != nil {
		return invalid("", "name a file with name, description, arguments and run", "%v", err)
	}
	p.Tool, err = parseTool(text)
	return err
}

// maxToolFile bounds the file of a tool, in bytes.
const maxToolFile = 128 << 10

func readToolFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxToolFile+1))
	if err == nil && len(text) > maxToolFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxToolFile)
	}
	return text, err
}

// parseTool reads a tool as people write it.
func parseTool(text []byte) (d tools.Definition, err error) {
	var file toolFile
	if err := document.Decode(text, &file); err != nil {
		return d, err
	}
	d = tools.Definition{Kind: tools.KindCommand, Place: tools.PlaceAgent, Command: file.Run, Costs: file.Costs,
		Tool: tools.Tool{Name: file.Name, Title: file.Title, Description: strings.TrimSpace(file.Description),
			Annotations: tools.Annotations{ReadOnly: file.ReadOnly, Destructive: file.Destructive, Idempotent: file.Idempotent, OpenWorld: file.OpenWorld}}}
	if file.Arguments == nil {
		file.Arguments = map[string]any{"type": "object", "additionalProperties": false}
	}
	if d.Arguments, err = json.Marshal(file.Arguments); err == nil && file.Result != nil {
		d.Result, err = json.Marshal(file.Result)
	}
	if err == nil && file.Timeout != "" {
		if d.Timeout, err = time.ParseDuration(file.Timeout); err != nil {
			err = fmt.Errorf("timeout: %.64q is no time, as 30s", file.Timeout)
		}
	}
	if err == nil {
		err = d.Validate()
	}
	if err != nil {
		return d, invalid("", "docs/tools.md has an example", "%v", err)
	}
	return d, nil
}

// fillCall reads the arguments of a call.
func fillCall(l *line, p *api.ToolCallParams) error {
	p.Arguments = json.RawMessage("{}")
	if len(l.args) > 2 {
		p.Arguments = json.RawMessage(l.args[2])
	}
	if !json.Valid(p.Arguments) {
		return invalid("", `write an object, as '{"path": "notes.txt"}'`, "%.64q is no JSON", l.args[2])
	}
	return nil
}

// showCall prints a result, and why there is none on stderr.
func showCall(s *screen, l *line, r api.ToolCallResult) error {
	err := printCall(s, l, r)
	if err == nil && r.Failed {
		return exitStatus(1)
	}
	return err
}

func printCall(s *screen, l *line, r api.ToolCallResult) error {
	if l.Bool(flagJSON) {
		return s.printJSON(r)
	}
	if r.Failed {
		fmt.Fprintf(s.err, "clove: %s: %s\n", l.args[1], document.Shown(r.Error))
	}
	if r.Text == "" {
		return nil
	}
	var lines []any
	for text := range strings.SplitSeq(strings.TrimSuffix(r.Text, "\n"), "\n") {
		lines = append(lines, text)
	}
	return s.printLines(lines)
}

// showTool prints a tool as its file has it.
func showTool(s *screen, l *line, r api.ToolResult) error {
	if l.Bool(flagJSON) {
		return s.printJSON(r.Tool)
	}
	t := r.Tool
	lines := []any{"name: " + t.Name, "description: " + t.Description, "arguments: " + string(t.Arguments)}
	if len(t.Result) > 0 {
		lines = append(lines, "result: "+string(t.Result))
	}
	if t.Command != nil {
		text, _ := json.Marshal(t.Command) // strings
		lines = append(lines, "run: "+string(text))
	}
	lines = append(lines, "timeout: "+t.MostTime().String())
	if t.Named {
		lines = append(lines, "granted by name alone: tool:"+t.Name)
	}
	return s.printLines(lines)
}
