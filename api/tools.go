package api

import (
	"encoding/json"
	"time"

	"clove.run/clove/tools"
)

// KeptTool is a tool that a user has added, or one that is built in.
type KeptTool struct {
	tools.Definition
	Owner uint32    `json:"owner"`
	Added time.Time `json:"added,omitzero"` // absent: it is built in
}

// ToolAddParams keeps a tool of the caller's.
type ToolAddParams struct {
	Tool tools.Definition `json:"tool"`
	Keyed
}

// ToolResult has a tool.
type ToolResult struct {
	Tool KeptTool `json:"tool"`
}

// ToolNameParams names a tool of the caller's.
type ToolNameParams struct {
	Tool string `json:"tool"`
	Keyed
}

// ToolShowParams names a tool of the caller's, or one that is built in.
type ToolShowParams struct {
	Tool string `json:"tool"`
}

// ToolKeptParams says where the last answer ended.
type ToolKeptParams struct {
	After string `json:"after,omitempty"`
}

// ToolKeptResult has tools, by name.
type ToolKeptResult struct {
	Tools []KeptTool `json:"tools"`
	Next  string     `json:"next,omitempty"` // after of the next part; absent: there is none
}

// WithAfter returns the parameters with another cursor.
func (p ToolKeptParams) WithAfter(cursor string) ToolKeptParams { p.After = cursor; return p }

// Part returns the tools.
func (r ToolKeptResult) Part() ([]KeptTool, string) { return r.Tools, r.Next }

// ToolListParams lists the tools that a run may call.
type ToolListParams struct {
	RunParams
	After string `json:"after,omitempty"` // next of the part before
}

// ToolListResult has tools, by name.
type ToolListResult struct {
	Tools []tools.Tool `json:"tools"`
	Next  string       `json:"next,omitempty"` // after of the next part; absent: there is none
}

// WithAfter returns the parameters with another cursor.
func (p ToolListParams) WithAfter(cursor string) ToolListParams { p.After = cursor; return p }

// Part returns the tools.
func (r ToolListResult) Part() ([]tools.Tool, string) { return r.Tools, r.Next }

// ToolCallParams calls a tool.
type ToolCallParams struct {
	RunParams
	Tool string `json:"tool"`
	// Arguments are an object of JSON, of at most 48 KiB; absent: {}.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// TimeoutMS bounds the call in milliseconds; absent: the tool's own bound, which it cannot pass.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	Keyed
}

// ToolCallResult is what a tool gave. That it failed is a result, too: the model that called it can do better.
type ToolCallResult struct {
	Call string `json:"call"` // its id, which the audit log has
	// Failed says that the tool failed, was ended, or was not done because its arguments do not fit.
	Failed bool `json:"failed,omitempty"`
	// Text is the result, of at most 48 KiB. Bytes that are no UTF-8 are replaced.
	Text string `json:"text"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
	// Left is how many bytes of the result are not in it.
	Left       int64 `json:"left,omitempty"`
	DurationMS int64 `json:"duration_ms"`
}
