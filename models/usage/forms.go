package usage

import (
	"bytes"

	"clove.run/clove/models"
)

// form is one way of reporting usage: where the object is in an answer or an event, and where the
// figures are in it. Gateways pass forms of other formats on, so a form does not depend on the
// format of the call, but for the names that two families use with different meanings.
type form struct {
	name    string
	family  models.Family // "": of all
	at      []string      // paths of the object; "" is the answer itself
	figures map[string]figure
	apart   bool // in leaves out what was cached and written
}

// forms are those that providers and servers are known to send; not each was compared with a live answer. Where an answer
// has several, the highest of each figure counts.
var forms = [...]form{
	{name: "OpenAI's", family: models.OpenAI, at: []string{"usage", "x_groq.usage", "choices.[].usage"}, figures: map[string]figure{
		"prompt_tokens":     in,
		"completion_tokens": out,
		"total_tokens":      total,
		"input_tokens":      in, // of responses, embeddings and images
		"output_tokens":     out,

		"prompt_tokens_details.cached_tokens":      cached,
		"prompt_token_details.cached_tokens":       cached, // Mistral
		"input_tokens_details.cached_tokens":       cached,
		"prompt_cache_hit_tokens":                  cached, // DeepSeek
		"cached_tokens":                            cached, // Moonshot, Together
		"num_cached_tokens":                        cached, // Mistral
		"cache_read_input_tokens":                  cached, // gateways of Anthropic
		"prompt_tokens_details.cache_write_tokens": written,
		"input_tokens_details.cache_write_tokens":  written,
		"cache_creation_input_tokens":              written,

		"prompt_tokens_details.cache_creation_input_tokens": written, // Qwen

		"completion_tokens_details.reasoning_tokens": reasoning, // in completion_tokens, but for xAI: then only the total has it
		"output_tokens_details.reasoning_tokens":     reasoning,
		"reasoning_tokens":                           more,     // Perplexity: billed beside completion_tokens
		"citation_tokens":                            moreIn,   // Perplexity: billed beside prompt_tokens
		"num_search_queries":                         searches, // Perplexity
		"num_sources_used":                           searches, // xAI
	}},
	{name: "Anthropic's", family: models.Anthropic, at: []string{"usage"}, apart: true, figures: map[string]figure{
		"input_tokens":                             in,
		"output_tokens":                            out,
		"cache_read_input_tokens":                  cached,
		"cache_creation_input_tokens":              written,
		"cache_creation.ephemeral_1h_input_tokens": hour,
		"output_tokens_details.thinking_tokens":    reasoning,
		"server_tool_use.web_search_requests":      searches,
	}},
	{name: "Gemini's and Vertex's", at: []string{"usageMetadata"}, figures: map[string]figure{
		"promptTokenCount":        in,
		"candidatesTokenCount":    out,
		"totalTokenCount":         total,
		"cachedContentTokenCount": cached,
		"thoughtsTokenCount":      more,
		"toolUsePromptTokenCount": moreIn,
	}},
	{name: "Bedrock Converse's", at: []string{"usage", "metadata.usage"}, apart: true, figures: map[string]figure{
		"inputTokens":           in,
		"outputTokens":          out,
		"totalTokens":           total,
		"cacheReadInputTokens":  cached,
		"cacheWriteInputTokens": written,
	}},
	{name: "Bedrock InvokeModel's", at: []string{"amazon-bedrock-invocationMetrics"}, apart: true, figures: map[string]figure{
		"inputTokenCount":           in,
		"outputTokenCount":          out,
		"cacheReadInputTokenCount":  cached,
		"cacheWriteInputTokenCount": written,
	}},
	{name: "Cohere's", at: []string{"usage", "delta.usage", "meta", "response.meta"}, figures: map[string]figure{
		"tokens.input_tokens":        in,
		"tokens.output_tokens":       out,
		"billed_units.input_tokens":  in,
		"billed_units.output_tokens": out,
		"cached_tokens":              cached,
	}},
	{name: "Ollama's", at: []string{""}, figures: map[string]figure{"prompt_eval_count": in, "eval_count": out}},
	{name: "llama.cpp's timings", at: []string{"timings"}, apart: true, figures: map[string]figure{"prompt_n": in, "cache_n": cached, "predicted_n": out}},
	{name: "llama.cpp's completion", at: []string{""}, figures: map[string]figure{"tokens_evaluated": in, "tokens_predicted": out}},
	{name: "TGI's", at: []string{"details"}, figures: map[string]figure{"input_length": in, "generated_tokens": out}},
	{name: "LM Studio's", at: []string{"stats"}, figures: map[string]figure{"input_tokens": in, "total_output_tokens": out, "reasoning_output_tokens": reasoning}},
}

// account is what an answer has reported in one form.
type account struct{ part, whole report }

// below returns the rest of a path below the object of a form.
func (f *form) below(path []byte, family models.Family) (rest []byte, ok bool) {
	if f.family != "" && f.family != family {
		return nil, false
	}
	for _, at := range f.at {
		switch rest, found := bytes.CutPrefix(path, []byte(at)); {
		case found && (at == "" || len(rest) == 0):
			return rest, true
		case found && rest[0] == '.':
			return rest[1:], true
		}
	}
	return nil, false
}

// normal makes in include what was cached and written, and out the reasoning. Figures that are
// missing stay so.
func (r report) normal(apart bool) report {
	if r[moreIn] >= 0 {
		r[in] = max(r[in], 0) + r[moreIn]
	}
	if r[more] >= 0 {
		r[out], r[reasoning] = max(r[out], 0)+r[more], max(r[reasoning], r[more])
	}
	if r[total] >= 0 && max(r[more], r[moreIn]) >= 0 { // Gemini's total has them, Perplexity's does not
		r[total] = max(r[total], r[in]+r[out])
	}
	if apart && max(r[in], r[cached], r[written]) >= 0 {
		r[in] = max(r[in], 0) + max(r[cached], 0) + max(r[written], 0)
	}
	return r
}
