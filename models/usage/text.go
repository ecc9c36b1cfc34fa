package usage

import (
	"bytes"
	"slices"

	"clove.run/clove/models"
)

// texts are the strings of an answer that the model wrote, with reasoning and arguments of
// calls. A path that ends in a dot stands for all strings below it.
var texts = map[models.Format][]string{
	models.OpenAIChat: slices.Concat(ofChat("choices.[].delta."), ofChat("choices.[].message.")),
	models.OpenAIResponses: {
		"delta", // of every event of a stream that has text
		"output.[].content.[].text", "output.[].content.[].refusal", "output.[].summary.[].text", "output.[].arguments", "output.[].input",
	},
	models.AnthropicMessages: {
		"delta.text", "delta.thinking", "delta.partial_json",
		"content.[].text", "content.[].thinking", "content.[].input.",
	},
}

func ofChat(prefix string) []string {
	var all []string
	for _, name := range []string{
		"content", "content.[].text", "reasoning_content", "reasoning", "refusal", "function_call.arguments",
		"tool_calls.[].function.name", "tool_calls.[].function.arguments", "tool_calls.[].custom.input",
	} {
		all = append(all, prefix+name)
	}
	return all
}

// counts implements handler.
func (m *Meter) counts(path []byte) bool {
	for _, text := range texts[m.format] {
		if string(path) == text || text[len(text)-1] == '.' && bytes.HasPrefix(path, []byte(text)) {
			return true
		}
	}
	return false
}
