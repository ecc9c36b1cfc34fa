package scripted

import (
	"encoding/json"
	"strings"
)

// request is what a script needs to know of a request, in any format.
type request struct {
	model  string
	last   string // text of the user's last message, or of the last tool results
	turn   int    // number of the answer in the conversation, from 1
	bytes  int64  // of all text that the model reads
	most   int64  // tokens of output that the request allows; 0: any number
	n      int    // answers that are asked for
	stream bool
	usage  bool // chat: a stream ends with the usage
}

// entry is one message of a conversation, or one result of a tool.
type entry struct {
	role string
	text string
}

// read sums up a conversation. Entries of one side that follow each other are one turn: an
// reply of the Responses API is several items, and several tools may have been called.
func (r *request) read(instructions string, conversation []entry) *request {
	r.turn, r.n = 1, max(r.n, 1)
	r.bytes += int64(len(instructions))
	before := ""
	for _, e := range conversation {
		r.bytes += int64(len(e.text))
		switch {
		case e.role == "system" || e.role == "developer":
			continue // belongs to neither side
		case e.role == "assistant":
			if before != "assistant" {
				r.turn++
			}
		case before == "user":
			r.last += "\n" + e.text
		default:
			r.last = e.text
		}
		if before = "user"; e.role == "assistant" {
			before = "assistant"
		}
	}
	return r
}

// content is a text, or a list of parts of which some have a text. Anything else is its JSON:
// the script answers what a provider might refuse.
type content string

func (c *content) UnmarshalJSON(text []byte) error {
	var parts []part
	switch {
	case json.Unmarshal(text, (*string)(c)) == nil:
		return nil
	case json.Unmarshal(text, &parts) != nil:
		*c = content(text)
		return nil
	}
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		if t := p.all(); t != "" {
			texts = append(texts, t)
		}
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}

// part is one part of a message: a text, or Anthropic's use of a tool or its result.
type part struct {
	Text    string          `json:"text"`
	Content content         `json:"content"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
}

func (p part) all() string { return p.Text + string(p.Content) + p.Name + string(p.Input) }

// chatRequest is POST /v1/chat/completions.
type chatRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role      string  `json:"role"`
		Content   content `json:"content"`
		ToolCalls []struct {
			Function function `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	N                   int   `json:"n"`
	MaxTokens           int64 `json:"max_tokens"`
	MaxCompletionTokens int64 `json:"max_completion_tokens"`
	Stream              bool  `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// function is a called tool in OpenAI's formats.
type function struct {
	Name      string  `json:"name"`
	Arguments content `json:"arguments"`
}

func readChat(body []byte) (*request, error) {
	var in chatRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	conversation := make([]entry, 0, len(in.Messages))
	for _, m := range in.Messages {
		text := string(m.Content)
		for _, call := range m.ToolCalls {
			text += call.Function.Name + string(call.Function.Arguments)
		}
		conversation = append(conversation, entry{m.Role, text})
	}
	r := &request{model: in.Model, most: max(in.MaxCompletionTokens, in.MaxTokens), n: in.N, stream: in.Stream, usage: in.StreamOptions.IncludeUsage}
	return r.read("", conversation), nil
}

// responsesRequest is POST /v1/responses.
type responsesRequest struct {
	Model           string `json:"model"`
	Instructions    string `json:"instructions"`
	Input           items  `json:"input"`
	MaxOutputTokens int64  `json:"max_output_tokens"`
	Stream          bool   `json:"stream"`
}

// items are a text of the user's, or a list.
type items []item

type item struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Content content `json:"content"`
	Output  content `json:"output"`
	function
}

func (all *items) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*all = items{{Role: "user", Content: content(one)}}
		return nil
	}
	return json.Unmarshal(text, (*[]item)(all))
}

// entry returns an item with its side. What has neither a role nor the output of a tool is the
// model's: calls and reasoning.
func (i item) entry() entry {
	role := i.Role
	if role == "" {
		if role = "assistant"; strings.HasSuffix(i.Type, "_output") {
			role = "user"
		}
	}
	return entry{role, string(i.Content) + string(i.Output) + i.Name + string(i.Arguments)}
}

func readResponses(body []byte) (*request, error) {
	var in responsesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	conversation := make([]entry, 0, len(in.Input))
	for _, i := range in.Input {
		conversation = append(conversation, i.entry())
	}
	r := &request{model: in.Model, most: in.MaxOutputTokens, stream: in.Stream}
	return r.read(in.Instructions, conversation), nil
}

// messagesRequest is POST /v1/messages, and count_tokens.
type messagesRequest struct {
	Model    string  `json:"model"`
	System   content `json:"system"`
	Messages []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
	MaxTokens int64 `json:"max_tokens"`
	Stream    bool  `json:"stream"`
}

func readMessages(body []byte) (*request, error) {
	var in messagesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	conversation := make([]entry, 0, len(in.Messages))
	for _, m := range in.Messages {
		conversation = append(conversation, entry{m.Role, string(m.Content)})
	}
	r := &request{model: in.Model, most: in.MaxTokens, stream: in.Stream}
	return r.read(string(in.System), conversation), nil
}
