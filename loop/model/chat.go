package model

import (
	"encoding/json"
	"net/http"
)

// chat is the format of OpenAI's chat completions, in which a conversation has the form of Message.
type chat struct{}

func (chat) path() string { return "/chat/completions" }

func (chat) authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

type chatTool struct {
	Type     string   `json:"type"`
	Function chatSpec `json:"function"`
}

type chatSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (chat) body(c *Client, messages []Message, choice string) ([]byte, error) {
	tools := make([]chatTool, len(c.Tools))
	for i, t := range c.Tools {
		tools[i] = chatTool{"function", chatSpec(t)}
	}
	body := map[string]any{"model": c.Model, "messages": messages, "stream": true, "stream_options": map[string]any{"include_usage": true}}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	if choice != "" {
		body["tool_choice"] = choice
	}
	return json.Marshal(body)
}

// chatEvent is one event of a stream.
type chatEvent struct {
	Choices []struct {
		Delta struct {
			Content   string     `json:"content"`
			ToolCalls []chatCall `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *Usage    `json:"usage"`
	Error *apiError `json:"error"`
}

// chatCall is a piece of a call.
type chatCall struct {
	Index    int      `json:"index"`
	ID       string   `json:"id"`
	Function Function `json:"function"`
}

func (chat) event(s *stream, data []byte) error {
	if string(data) == "[DONE]" {
		s.over = true
		return nil
	}
	var e chatEvent
	if err := decode(data, &e); err != nil {
		return err
	}
	if e.Error != nil {
		return e.Error.failure()
	}
	if e.Usage != nil {
		s.usage = &Usage{In: max(e.Usage.In, 0), Out: max(e.Usage.Out, 0)}
	}
	if len(e.Choices) == 0 {
		return nil
	}
	choice := e.Choices[0]
	if reason := choice.FinishReason; reason != "" {
		s.ended, s.cut = true, reason == "length"
	}
	if err := s.say(choice.Delta.Content); err != nil {
		return err
	}
	for _, piece := range choice.Delta.ToolCalls {
		if piece.Index < 0 || piece.Index > len(s.calls) {
			return &Failure{Message: "the model's answer has tool calls that are not in order"}
		}
		if piece.Index == len(s.calls) {
			if err := s.begin(piece.Index); err != nil {
				return err
			}
		}
		if err := s.add(s.calls[piece.Index], piece.ID, piece.Function); err != nil {
			return err
		}
	}
	return nil
}
