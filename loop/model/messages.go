package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// messages is the format of Anthropic's messages. A request has no max_tokens: clove writes the
// most that the model and the budgets allow. Reasoning is not asked for, and not kept.
type messages struct{}

func (messages) path() string { return "/messages" }

func (messages) authorize(h http.Header, key string) {
	h.Set("X-Api-Key", key)
	h.Set("Anthropic-Version", "2023-06-01")
}

type messagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"input_schema"`
}

func (messages) body(c *Client, all []Message, choice string) ([]byte, error) {
	system, turns := turnsOf(all)
	if len(turns) > 0 { // all of it is what the next call begins with
		blocks := turns[len(turns)-1].Content
		blocks[len(blocks)-1]["cache_control"] = block{"type": "ephemeral"}
	}
	body := map[string]any{"model": c.Model, "messages": turns, "stream": true}
	if system != "" {
		body["system"] = system
	}
	if len(c.Tools) > 0 {
		tools := make([]messagesTool, len(c.Tools))
		for i, t := range c.Tools {
			tools[i] = messagesTool(t)
		}
		body["tools"] = tools
	}
	if choice != "" {
		body["tool_choice"] = block{"type": choice}
	}
	return json.Marshal(body)
}

type block map[string]any

type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// turnsOf is a conversation in which the two sides take turns: the results of all calls of an
// answer are one turn, with the prompt that follows. Ids of calls must be unique and plain, and
// those of other providers are not, so calls are counted; results are in their order. A text must
// not be blank.
func turnsOf(all []Message) (system string, turns []turn) {
	var open []string // calls that have no result yet
	calls := 0
	add := func(role string, b block) {
		if len(turns) == 0 || turns[len(turns)-1].Role != role {
			turns = append(turns, turn{Role: role})
		}
		last := &turns[len(turns)-1]
		last.Content = append(last.Content, b)
	}
	for _, m := range all {
		switch {
		case m.Role == RoleSystem:
			system = strings.TrimSpace(system + "\n\n" + m.Content)
		case m.Role == RoleTool && len(open) > 0:
			add(RoleUser, block{"type": "tool_result", "tool_use_id": open[0], "content": m.Content})
			open = open[1:]
		case strings.TrimSpace(m.Content) != "":
			add(m.Role, block{"type": "text", "text": m.Content})
		}
		for _, c := range m.ToolCalls {
			calls++
			open = append(open, fmt.Sprintf("call_%d", calls))
			add(m.Role, block{"type": "tool_use", "id": open[len(open)-1], "name": plain(c.Function.Name), "input": object(c.Function.Arguments)})
		}
	}
	return system, turns
}

// plain is the name of a tool, which a model may have made up, as the format takes it.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	return (name + "_")[:max(1, min(len(name), 128))]
}

// object is arguments as the format has them, each name once. Those that are no object, as a cut
// answer has them, are kept as a text.
func object(arguments string) map[string]any {
	var input map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(arguments)))
	decoder.UseNumber()
	if err := decoder.Decode(&input); (err != nil || input == nil || decoder.More()) && strings.TrimSpace(arguments) != "" {
		return map[string]any{"not_an_object": arguments}
	}
	if input == nil {
		input = map[string]any{}
	}
	return input
}

// messagesEvent is one event of a stream, of those that are read.
type messagesEvent struct {
	Index   int `json:"index"` // of the block
	Message struct {
		Usage messagesUsage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Input  string `json:"partial_json"`
		Reason string `json:"stop_reason"`
	} `json:"delta"`
	Usage messagesUsage `json:"usage"`
	Error apiError      `json:"error"`
}

// messagesUsage counts the whole answer so far. Of the input, what the cache has is apart.
type messagesUsage struct {
	In      int `json:"input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Written int `json:"cache_creation_input_tokens"`
	Out     int `json:"output_tokens"`
}

func (messages) event(s *stream, data []byte) error {
	var kind struct {
		Type string `json:"type"`
	}
	var e messagesEvent
	err := decode(data, &kind)
	switch kind.Type { // others may have any form
	case "message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "error":
		err = decode(data, &e)
	}
	if err != nil {
		return err
	}
	switch kind.Type {
	case "error":
		return e.Error.failure()
	case "message_start":
		s.report(e.Message.Usage)
	case "content_block_start":
		if e.Block.Type == "text" {
			return s.say(e.Block.Text)
		}
		if e.Block.Type == "tool_use" {
			if err := s.begin(e.Index); err != nil {
				return err
			}
			input := string(e.Block.Input)
			if input == "{}" { // it comes in pieces
				input = ""
			}
			return s.add(s.calls[len(s.calls)-1], e.Block.ID, Function{e.Block.Name, input})
		}
	case "content_block_delta":
		if e.Delta.Type == "text_delta" {
			return s.say(e.Delta.Text)
		}
		for _, call := range s.calls {
			if e.Delta.Type == "input_json_delta" && call.index == e.Index {
				return s.add(call, "", Function{Arguments: e.Delta.Input})
			}
		}
	case "message_delta":
		if e.Delta.Reason == "refusal" {
			return &Failure{Message: "the model refuses to answer"}
		}
		s.ended = s.ended || e.Delta.Reason != ""
		s.cut = s.cut || e.Delta.Reason == "max_tokens" || e.Delta.Reason == "model_context_window_exceeded"
		s.report(e.Usage)
	case "message_stop":
		s.over = true
	}
	return nil
}

// report takes usage, of which a later event may leave a part out.
func (s *stream) report(u messagesUsage) {
	if u == (messagesUsage{}) {
		return
	}
	if s.usage == nil {
		s.usage = &Usage{}
	}
	s.usage.In, s.usage.Out = max(s.usage.In, u.In+u.Read+u.Written), max(s.usage.Out, u.Out)
}
