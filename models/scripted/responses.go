package scripted

import (
	"fmt"
	"maps"

	"clove.run/clove/models"
)

// wholeResponse is a response of the Responses API.
func wholeResponse(a *reply) any { return response(a, outputs(a), true) }

// response is the object that the API returns, and that the first and last events of a
// stream hold.
func response(a *reply, output []any, done bool) map[string]any {
	r := map[string]any{"id": "resp_" + a.id, "object": "response", "created_at": born, "status": "in_progress", "background": false, "error": nil,
		"incomplete_details": nil, "instructions": nil, "max_output_tokens": nil, "metadata": map[string]any{}, "model": a.r.model, "output": output,
		"parallel_tool_calls": true, "previous_response_id": nil, "reasoning": map[string]any{"effort": nil, "summary": nil}, "service_tier": "default",
		"store": false, "temperature": 1, "text": map[string]any{"format": map[string]any{"type": "text"}}, "tool_choice": "auto", "tools": []any{},
		"top_p": 1, "truncation": "disabled", "usage": nil, "user": nil}
	if a.r.most > 0 {
		r["max_output_tokens"] = a.r.most
	}
	if done {
		r["status"], r["usage"] = status(a), responseUsage(a.used)
		if a.cut {
			r["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
		}
	}
	return r
}

// status is the end of the name of a stream's last event, too.
func status(a *reply) string {
	if a.cut {
		return "incomplete"
	}
	return "completed"
}

// outputs are the finished items: the message, unless there are calls only, and the calls.
func outputs(a *reply) []any {
	items := []any{}
	if a.text != "" || len(a.calls) == 0 {
		items = append(items, message(a, status(a), []any{textPart(a.text)}))
	}
	for i, c := range a.calls {
		items = append(items, functionCall(a, i, "completed", c.arguments))
	}
	return items
}

func message(a *reply, status string, content []any) map[string]any {
	return map[string]any{"id": "msg_" + a.id, "type": "message", "status": status, "role": "assistant", "content": content}
}

func textPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func functionCall(a *reply, i int, status, arguments string) map[string]any {
	c := a.calls[i]
	return map[string]any{"id": fmt.Sprintf("fc_%s_%d", a.id, i+1), "type": "function_call", "status": status, "call_id": c.id, "name": c.name, "arguments": arguments}
}

// streamResponse is: created, in_progress; each item from added to done; completed, or
// incomplete if the answer was cut.
//
// OpenAI's SDKs fail if created is not the first, and find items by output_index in the order
// in which they were added. Codex ignores the pieces of arguments: it takes each item from
// its output_item.done, and treats a stream without completed as broken.
func streamResponse(a *reply, e *events) {
	e.numbered("response.created", map[string]any{"response": response(a, []any{}, false)})
	e.numbered("response.in_progress", map[string]any{"response": response(a, []any{}, false)})
	index := 0
	if a.text != "" || len(a.calls) == 0 {
		streamText(a, e)
		index++
	}
	for i := range a.calls {
		streamCall(a, e, i, index+i)
	}
	e.numbered("response."+status(a), map[string]any{"response": response(a, outputs(a), true)})
}

// streamText is the message: its item, its one part, the text in pieces, and the end of each.
func streamText(a *reply, e *events) {
	at := map[string]any{"item_id": "msg_" + a.id, "output_index": 0, "content_index": 0}
	with := func(more map[string]any) map[string]any {
		all := maps.Clone(at)
		maps.Copy(all, more)
		return all
	}
	e.numbered("response.output_item.added", map[string]any{"output_index": 0, "item": message(a, "in_progress", []any{})})
	e.numbered("response.content_part.added", with(map[string]any{"part": textPart("")}))
	e.pieces(a, func(piece string) {
		e.numbered("response.output_text.delta", with(map[string]any{"delta": piece, "logprobs": []any{}}))
	})
	e.numbered("response.output_text.done", with(map[string]any{"text": a.text, "logprobs": []any{}}))
	e.numbered("response.content_part.done", with(map[string]any{"part": textPart(a.text)}))
	e.numbered("response.output_item.done", map[string]any{"output_index": 0, "item": message(a, status(a), []any{textPart(a.text)})})
}

// streamCall is one call of a tool: its item, the arguments in pieces, and the end of each.
func streamCall(a *reply, e *events, i, index int) {
	item := functionCall(a, i, "in_progress", "")
	e.numbered("response.output_item.added", map[string]any{"output_index": index, "item": item})
	for _, piece := range a.turn.chunks(a.calls[i].arguments) {
		e.numbered("response.function_call_arguments.delta", map[string]any{"item_id": item["id"], "output_index": index, "delta": piece})
	}
	done := functionCall(a, i, "completed", a.calls[i].arguments)
	e.numbered("response.function_call_arguments.done", map[string]any{"item_id": item["id"], "output_index": index, "name": done["name"], "arguments": done["arguments"]})
	e.numbered("response.output_item.done", map[string]any{"output_index": index, "item": done})
}

// responseUsage counts what was cached as a part of the input.
func responseUsage(u models.Usage) any {
	input := u.In + u.Cached + u.CacheWrite
	return map[string]any{"input_tokens": input, "output_tokens": u.Out, "total_tokens": input + u.Out,
		"input_tokens_details":  map[string]any{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWrite},
		"output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}}
}
