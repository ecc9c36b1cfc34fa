package tools

import (
	"encoding/json"
	"io"
	"time"
)

// Tool is what a caller sees of a tool.
type Tool struct {
	Name        string `json:"name" col:"TOOL"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description" col:"DESCRIPTION,,cut"`
	// Arguments is the JSON Schema of the arguments, which are an object.
	Arguments json.RawMessage `json:"arguments"`
	// Result is that of the result, which is JSON then; absent: the result is text.
	Result      json.RawMessage `json:"result,omitempty"`
	Annotations Annotations     `json:"annotations,omitzero"`
}

// Annotations are hints for people and clients, as those of MCP. Absent: unknown.
type Annotations struct {
	ReadOnly    *bool `json:"read_only,omitempty"`   // it changes nothing
	Destructive *bool `json:"destructive,omitempty"` // it may remove or overwrite
	Idempotent  *bool `json:"idempotent,omitempty"`  // a repetition changes nothing more
	OpenWorld   *bool `json:"open_world,omitempty"`  // it reaches beyond the sandbox
}

// Kind is how a tool runs.
type Kind string

// The kinds.
const (
	KindBuiltin Kind = "builtin" // by clove-tool itself
	KindCommand Kind = "command" // a program, by a template of its arguments
)

// Place is where a tool runs.
type Place string

// PlaceAgent is the caller's own sandbox, with the caller's rights.
const PlaceAgent Place = "agent"

// Definition is a tool with how it runs.
type Definition struct {
	Tool
	Kind  Kind  `json:"run" col:"RUN"`
	Place Place `json:"where"`
	// Command is the template of a KindCommand: the program and its arguments. {NAME} stands for an
	// argument of the call; there is no shell.
	Command []string `json:"command,omitempty"`
	// Timeout bounds a call; 0: DefaultTimeout.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Costs are what a call takes of budgets' own dimensions, beside one of tool_calls.
	Costs map[string]int64 `json:"costs,omitempty"`
	// Named says that a grant must have the tool's name: tool:* does not cover it.
	Named bool `json:"named,omitempty"`
}

// Program is where clove-tool is inside a sandbox, shown read-only.
const Program = "/opt/clove/clove-tool"

// Order is what clove-tool reads from its stdin: one JSON value.
type Order struct {
	Tool      string          `json:"tool"`              // its name
	Command   []string        `json:"command,omitempty"` // of a KindCommand; absent: it is built in
	Schema    json.RawMessage `json:"schema,omitempty"`  // of the arguments of a KindCommand
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Most      int             `json:"most"` // bytes of the result
}

// Output gets what a program writes, from one goroutine for each stream.
type Output struct{ Stdout, Stderr io.Writer }

// The exit statuses of clove-tool.
const (
	ExitDone    = 0 // stdout is the result
	ExitFailed  = 1 // the tool says on stderr why; stdout may have a part
	ExitInvalid = 2 // the arguments do not fit, and nothing was done; stderr says why
)

// Bounds.
const (
	MaxArguments   = 48 << 10 // bytes of the arguments of a call
	MaxText        = 48 << 10 // bytes of a result that an answer carries
	MaxError       = 8 << 10  // bytes of why a call failed
	MaxSchema      = 32 << 10 // bytes of a JSON Schema
	MaxDescription = 4 << 10  // bytes
	MaxName        = 64       // letters, digits, - and _

	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = time.Hour
)
