package usage

import (
	"testing"

	"clove.run/clove/models"
)

// Each row has the shape in which a provider or server is known to report, with figures that tell its
// parts apart. None was recorded from a live one.
var reports = []struct {
	name   string
	format models.Format
	stream bool
	answer string
	want   models.Usage
}{
	{"OpenAI embeddings", models.OpenAIChat, false, `{"object":"list","data":[{"embedding":[0.1,-2]}],"model":"e","usage":{"prompt_tokens":8,"total_tokens":8}}`, models.Usage{In: 8}},
	{"OpenAI images", models.OpenAIChat, false, `{"created":1,"data":[{"b64_json":"AA"}],"usage":{"total_tokens":100,"input_tokens":50,"output_tokens":50,"input_tokens_details":{"text_tokens":10,"image_tokens":40}}}`, models.Usage{In: 50, Out: 50}},
	{"Azure OpenAI stream", models.OpenAIChat, true, unnamed(`{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, `{"choices":[],"usage":{"prompt_tokens":18,"completion_tokens":9,"total_tokens":27,"completion_tokens_details":{"reasoning_tokens":4},"prompt_tokens_details":{"cached_tokens":6}}}`, `[DONE]`), models.Usage{In: 12, Cached: 6, Out: 9, Reasoning: 4}},
	{"DeepSeek", models.OpenAIChat, false, `{"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,"completion_tokens_details":{"reasoning_tokens":5}}}`, models.Usage{In: 36, Cached: 64, Out: 20, Reasoning: 5}},
	{"DeepSeek in Anthropic's format", models.AnthropicMessages, false, `{"type":"message","usage":{"input_tokens":36,"cache_read_input_tokens":64,"cache_creation_input_tokens":0,"output_tokens":20}}`, models.Usage{In: 36, Cached: 64, Out: 20}},
	{"xAI", models.OpenAIChat, false, `{"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"prompt_tokens_details":{"text_tokens":32,"cached_tokens":6},"completion_tokens_details":{"reasoning_tokens":94},"num_sources_used":0}}`, models.Usage{In: 26, Cached: 6, Out: 103, Reasoning: 94}},
	{"Groq stream", models.OpenAIChat, true, unnamed(`{"choices":[{"delta":{"content":"a"}}],"x_groq":{"id":"r"}}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"queue_time":0.06,"prompt_tokens":72,"prompt_time":0.002,"completion_tokens":24,"completion_time":0.05,"total_tokens":96,"total_time":0.05}}}`, `[DONE]`), models.Usage{In: 72, Out: 24}},
	{"Mistral", models.OpenAIChat, false, `{"usage":{"prompt_tokens":30,"completion_tokens":7,"total_tokens":37,"num_cached_tokens":16,"prompt_audio_seconds":null}}`, models.Usage{In: 14, Cached: 16, Out: 7}},
	{"Moonshot stream", models.OpenAIChat, true, unnamed(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":19,"completion_tokens":21,"total_tokens":40,"cached_tokens":10}}]}`, `[DONE]`), models.Usage{In: 9, Cached: 10, Out: 21}},
	{"OpenRouter", models.OpenAIChat, false, `{"usage":{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.95,"cost_details":{"upstream_inference_cost":19},"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":50,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":1}}}`, models.Usage{In: 44, Cached: 100, CacheWrite: 50, Out: 2, Reasoning: 1}},
	{"Together stream", models.OpenAIChat, true, unnamed(`{"choices":[{"delta":{"content":""},"text":""}],"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14,"cached_tokens":4}}`, `[DONE]`), models.Usage{In: 7, Cached: 4, Out: 3}},
	{"Fireworks", models.OpenAIChat, false, `{"usage":{"prompt_tokens":40,"total_tokens":45,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":32}},"perf_metrics":{"prompt-tokens":"40"}}`, models.Usage{In: 8, Cached: 32, Out: 5}},
	{"Perplexity", models.OpenAIChat, false, `{"usage":{"prompt_tokens":33,"completion_tokens":700,"total_tokens":733,"citation_tokens":2000,"num_search_queries":21,"reasoning_tokens":7000,"search_context_size":"low","cost":{"total_cost":0.8}}}`, models.Usage{In: 2033, Out: 7700, Reasoning: 7000}},
	{"Qwen", models.OpenAIChat, false, `{"usage":{"prompt_tokens":3019,"completion_tokens":104,"total_tokens":3123,"prompt_tokens_details":{"cached_tokens":0,"cache_creation_input_tokens":2048,"cache_type":"ephemeral"}}}`, models.Usage{In: 971, CacheWrite: 2048, Out: 104}},
	{"vLLM stream", models.OpenAIChat, true, unnamed(`{"choices":[],"usage":{"prompt_tokens":10,"total_tokens":12,"completion_tokens":2,"prompt_tokens_details":null}}`, `[DONE]`), models.Usage{In: 10, Out: 2}},
	{"Vertex in OpenAI's format", models.OpenAIChat, false, `{"usage":{"completion_tokens":3,"prompt_tokens":7,"total_tokens":10,"extra_properties":{"google":{"traffic_type":"ON_DEMAND"}}}}`, models.Usage{In: 7, Out: 3}},
	{"Gemini", models.OpenAIChat, false, `{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"candidatesTokenCount":7,"thoughtsTokenCount":30,"toolUsePromptTokenCount":5,"totalTokenCount":142,"promptTokensDetails":[{"modality":"TEXT","tokenCount":100}]}}`, models.Usage{In: 65, Cached: 40, Out: 37, Reasoning: 30}},
	{"Gemini stream", models.OpenAIChat, true, unnamed(`{"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}`, `{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"totalTokenCount":13}}`), models.Usage{In: 9, Out: 4}},
	{"Bedrock Converse", models.OpenAIChat, false, `{"output":{"message":{"role":"assistant"}},"usage":{"inputTokens":30,"outputTokens":6,"totalTokens":136,"cacheReadInputTokens":80,"cacheWriteInputTokens":20}}`, models.Usage{In: 30, Cached: 80, CacheWrite: 20, Out: 6}},
	{"Bedrock Converse stream", models.OpenAIChat, true, unnamed(`{"metadata":{"usage":{"inputTokens":30,"outputTokens":6,"totalTokens":36},"metrics":{"latencyMs":9}}}`), models.Usage{In: 30, Out: 6}},
	{"Bedrock InvokeModel stream", models.AnthropicMessages, true, events(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":30,"outputTokenCount":6,"invocationLatency":9,"cacheReadInputTokenCount":80}}`), models.Usage{In: 30, Cached: 80, Out: 6}},
	{"Cohere", models.OpenAIChat, false, `{"message":{"role":"assistant"},"usage":{"billed_units":{"input_tokens":5,"output_tokens":4},"tokens":{"input_tokens":71,"output_tokens":4},"cached_tokens":16}}`, models.Usage{In: 55, Cached: 16, Out: 4}},
	{"Cohere stream", models.OpenAIChat, true, unnamed(`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":5,"output_tokens":4},"tokens":{"input_tokens":71,"output_tokens":5}}}}`), models.Usage{In: 71, Out: 5}},
	{"Ollama", models.OpenAIChat, false, `{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"total_duration":4883583458,"prompt_eval_count":26,"eval_count":282,"eval_duration":4535599000}`, models.Usage{In: 26, Out: 282}},
	{"llama.cpp timings", models.OpenAIChat, true, unnamed(`{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":236,"prompt_n":1,"prompt_ms":30.9,"predicted_n":35,"predicted_ms":661.0}}`, `[DONE]`), models.Usage{In: 1, Cached: 236, Out: 35}},
	{"llama.cpp timings beside usage", models.OpenAIChat, false, `{"usage":{"prompt_tokens":237,"completion_tokens":35,"total_tokens":272},"timings":{"cache_n":236,"prompt_n":1,"predicted_n":35}}`, models.Usage{In: 1, Cached: 236, Out: 35}},
	{"llama.cpp completion", models.OpenAIChat, false, `{"content":"Hi","tokens_evaluated":12,"tokens_predicted":3,"tokens_cached":14}`, models.Usage{In: 12, Out: 3}},
	{"TGI chat", models.OpenAIChat, false, `{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":16,"completion_tokens":20,"total_tokens":36}}`, models.Usage{In: 16, Out: 20}},
	{"TGI generate", models.OpenAIChat, true, unnamed(`{"token":{"id":1},"generated_text":"Hi","details":{"finish_reason":"length","generated_tokens":20,"seed":null,"input_length":16}}`), models.Usage{In: 16, Out: 20}},
	{"LM Studio", models.OpenAIChat, false, `{"output":[],"stats":{"input_tokens":329,"total_output_tokens":268,"reasoning_output_tokens":5,"tokens_per_second":43.7}}`, models.Usage{In: 329, Out: 268, Reasoning: 5}},
}

func TestReportsOfProviders(t *testing.T) {
	t.Parallel()
	for _, row := range reports {
		r := measure(row.format, row.stream, row.answer, 5)
		if r.Usage != row.want || !r.Reported || r.Lacks != "" || len(r.Faults) > 0 {
			t.Errorf("%s: %+v", row.name, r)
		}
	}
	if r := measure(models.OpenAIChat, false, reports[12].answer, 5); r.Searches != 21 {
		t.Errorf("%d searches", r.Searches)
	}
}

// The counts are looked for in the places of the forms alone: an agent's tools and texts name the
// same words.
func TestNoReport(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`{"choices":[{"message":{"content":"{\"usage\":{\"prompt_tokens\":9}}","usage":{"prompt_tokens":9}}}]}`,
		`{"metadata":{"usageMetadata":{"promptTokenCount":9}},"usages":{"prompt_tokens":9},"prompt_eval_counts":9}`,
		`{"usage":{"tokens_in":9,"prompt_tokens":null}}`,
	} {
		if r := measure(models.OpenAIChat, false, answer, 7); r.Reported || r.Usage != (models.Usage{}) {
			t.Errorf("%s: %+v", answer, r)
		}
	}
}

// What a report lacks is estimated: the rest of a total, or the whole figure.
func TestReportsThatLackAFigure(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answer string
		lacks  Missing
		want   models.Usage
	}{
		{`{"usage":{"total_tokens":100}}`, Split, models.Usage{In: 60, Out: 40}},
		{`{"usage":{"total_tokens":50}}`, Split, models.Usage{In: 50}},
		{`{"details":{"generated_tokens":20}}`, Input, models.Usage{In: 60, Out: 20}},
		{`{"choices":[{"message":{"content":"123456"}}],"usage":{"prompt_tokens":70}}`, Output, models.Usage{In: 70, Out: 2}},
		{`{"usage":{"prompt_tokens":70,"completion_tokens":1}}`, "", models.Usage{In: 70, Out: 1}},
	} {
		r := measure(models.OpenAIChat, false, row.answer, 9)
		if got := r.Charge(models.OpenAIChat, 60); r.Lacks != row.lacks || got != row.want {
			t.Errorf("%s: %q, %+v", row.answer, r.Lacks, got)
		}
	}
}
