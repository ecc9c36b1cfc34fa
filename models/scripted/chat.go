package scripted

import "clove.run/clove/models"

// born is when every answer was made, in seconds since 1970: answers repeat themselves.
const born = 1_700_000_000

// wholeChat is a chat completion.
func wholeChat(a *reply) any {
	message := map[string]any{"role": "assistant", "content": a.text, "refusal": nil}
	if len(a.calls) > 0 {
		message["tool_calls"] = chatCalls(a)
		if a.text == "" {
			message["content"] = nil
		}
	}
	choices := []any{}
	for i := range a.r.n {
		choices = append(choices, map[string]any{"index": i, "message": message, "logprobs": nil, "finish_reason": chatReason(a)})
	}
	return map[string]any{"id": "chatcmpl-" + a.id, "object": "chat.completion", "created": born, "model": a.r.model, "choices": choices,
		"usage": chatUsage(a.used), "service_tier": "default", "system_fingerprint": "fp_scripted"}
}

// streamChat is: the role, the text in pieces, each call with its name and then its
// arguments, the reason for the end; if it was asked for, the usage; [DONE].
//
// Clients join the pieces of a call by its index: id and name are in the first only. The
// event with the usage has no choices, which clients that read choices[0] must expect.
func streamChat(a *reply, e *events) {
	for i := range a.r.n {
		delta := func(delta map[string]any, reason any) {
			e.send("", chunk(a, []any{map[string]any{"index": i, "delta": delta, "logprobs": nil, "finish_reason": reason}}, nil))
		}
		delta(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
		e.pieces(a, func(piece string) { delta(map[string]any{"content": piece}, nil) })
		for n, c := range a.calls {
			named := map[string]any{"index": n, "id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": ""}}
			delta(map[string]any{"tool_calls": []any{named}}, nil)
			for _, piece := range a.turn.chunks(c.arguments) {
				delta(map[string]any{"tool_calls": []any{map[string]any{"index": n, "function": map[string]any{"arguments": piece}}}}, nil)
			}
		}
		delta(map[string]any{}, chatReason(a))
	}
	if a.r.usage {
		e.send("", chunk(a, []any{}, chatUsage(a.used)))
	}
	e.line("", "[DONE]")
}

// chunk is one event. usage stands in each if it was asked for, null before the last.
func chunk(a *reply, choices []any, usage any) map[string]any {
	c := map[string]any{"id": "chatcmpl-" + a.id, "object": "chat.completion.chunk", "created": born, "model": a.r.model, "choices": choices,
		"service_tier": "default", "system_fingerprint": "fp_scripted"}
	if a.r.usage {
		c["usage"] = usage
	}
	return c
}

func chatCalls(a *reply) []any {
	var calls []any
	for _, c := range a.calls {
		calls = append(calls, map[string]any{"id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": c.arguments}})
	}
	return calls
}

// chatReason is the finish_reason.
func chatReason(a *reply) string {
	switch {
	case a.cut:
		return "length"
	case len(a.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// chatUsage counts what was cached as a part of the prompt.
func chatUsage(u models.Usage) any {
	prompt := u.In + u.Cached + u.CacheWrite
	return map[string]any{"prompt_tokens": prompt, "completion_tokens": u.Out, "total_tokens": prompt + u.Out,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWrite, "audio_tokens": 0},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}}
}
