package scripted

import (
	"encoding/json"

	"clove.run/clove/models"
)

// wholeMessage is a message of Anthropic's.
func wholeMessage(a *reply) any {
	m := emptyMessage(a)
	blocks := []any{}
	if a.text != "" || len(a.calls) == 0 {
		blocks = append(blocks, map[string]any{"type": "text", "text": a.text, "citations": nil})
	}
	for _, c := range a.calls {
		blocks = append(blocks, toolUse(c, object(c.arguments)))
	}
	m["content"], m["stop_reason"], m["usage"] = blocks, messageReason(a), messageUsage(a.used)
	return m
}

// emptyMessage is the message that begins a stream: its usage has the input only.
func emptyMessage(a *reply) map[string]any {
	begun := a.used
	begun.Out, begun.Reasoning = min(1, begun.Out), 0
	return map[string]any{"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.r.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": messageUsage(begun)}
}

func toolUse(c usedTool, input any) map[string]any {
	return map[string]any{"type": "tool_use", "id": "toolu_" + c.id, "name": c.name, "input": input}
}

// object returns arguments as JSON; what is no object is an empty one, as the format has no
// place for it.
func object(arguments string) any {
	var input map[string]any
	if json.Unmarshal([]byte(arguments), &input) != nil || input == nil {
		return map[string]any{}
	}
	return json.RawMessage(arguments)
}

// streamMessage is: message_start, a ping; each block from start to stop; message_delta with
// the reason for the end and the usage of all; message_stop.
//
// Anthropic's SDKs fail if message_start is not the first, and find blocks by index in the
// order in which they started. The input of a tool begins as an empty object, and arrives as
// pieces of JSON text.
func streamMessage(a *reply, e *events) {
	send := func(name string, data map[string]any) {
		data["type"] = name
		e.send(name, data)
	}
	send("message_start", map[string]any{"message": emptyMessage(a)})
	send("ping", map[string]any{})
	index := 0
	if a.text != "" || len(a.calls) == 0 {
		send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
		e.pieces(a, func(piece string) {
			send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": piece}})
		})
		send("content_block_stop", map[string]any{"index": 0})
		index++
	}
	for i, c := range a.calls {
		send("content_block_start", map[string]any{"index": index + i, "content_block": toolUse(c, map[string]any{})})
		for _, piece := range a.turn.chunks(c.arguments) {
			send("content_block_delta", map[string]any{"index": index + i, "delta": map[string]any{"type": "input_json_delta", "partial_json": piece}})
		}
		send("content_block_stop", map[string]any{"index": index + i})
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": messageReason(a), "stop_sequence": nil}, "usage": messageUsage(a.used)})
	send("message_stop", map[string]any{})
}

// messageReason is the stop_reason.
func messageReason(a *reply) string {
	switch {
	case a.cut:
		return "max_tokens"
	case len(a.calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// messageUsage counts what was cached apart from the input, as models.Usage does.
func messageUsage(u models.Usage) any {
	return map[string]any{"input_tokens": u.In, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.CacheWrite,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": u.CacheWrite - u.CacheWriteLong, "ephemeral_1h_input_tokens": u.CacheWriteLong},
		"output_tokens":  u.Out, "output_tokens_details": map[string]any{"thinking_tokens": u.Reasoning}, "service_tier": "standard"}
}
