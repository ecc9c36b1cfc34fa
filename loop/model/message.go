package model

import "encoding/json"

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one message of a conversation, in the form that OpenAI's chat completions have.
type Message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// ToolCall is a call that the model asks for.
type ToolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"` // "function"
	Function Function `json:"function"`
}

// Function is the tool and its arguments, JSON as the model wrote it.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is a tool that the model may call; Parameters is a JSON schema.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
}

// Usage is what the provider reports for one answer, in tokens.
type Usage struct {
	In  int `json:"prompt_tokens"`
	Out int `json:"completion_tokens"`
}

// Tokens estimates the size of a message, as a quarter of its bytes and some for its frame.
func (m Message) Tokens() int {
	bytes := len(m.Content)
	for _, c := range m.ToolCalls {
		bytes += len(c.Function.Name) + len(c.Function.Arguments) + 16
	}
	return bytes/4 + 4
}

// Answer is what a model answered.
type Answer struct {
	Message Message
	Usage   *Usage // nil: none was reported
	Cut     bool   // the provider ended it at the maximum of output
}
