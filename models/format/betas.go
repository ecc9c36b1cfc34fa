package format

import (
	"regexp"
	"slices"
	"strings"
)

// betas are the values of Anthropic's header anthropic-beta that may be sent, without their
// dates. Each only opens fields, and fields have rows of their own: what needs a right there
// needs it with the header, too.
var betas = []row{
	{"claude-code", "a coding agent", pass},
	{"prompt-caching", "caches", pass},
	{"prompt-caching-scope", "caches", pass},
	{"extended-cache-ttl", "caches of an hour", pass},
	{"pdfs", "documents", pass},
	{"token-counting", "count_tokens", pass},
	{"token-efficient-tools", "shorter calls of tools", pass},
	{"fine-grained-tool-streaming", "how arguments are sent", pass},
	{"advanced-tool-use", "search among tools, examples of arguments", pass},
	{"mid-conversation-tool-changes", "tools that come and go", pass},
	{"mid-conversation-system", "text of the system between messages", pass},
	{"computer-use", "the agent's computer", pass},
	{"interleaved-thinking", "reasoning between calls", pass},
	{"dev-full-thinking", "reasoning in full", pass},
	{"thinking-token-count", "reports reasoning", pass},
	{"effort", "how much to reason", pass},
	{"structured-outputs", "form of the answer", pass},
	{"output-128k", "longer answers", pass},
	{"output-300k", "longer answers", pass},
	{"context-1m", "longer conversations, at another price", pass},
	{"context-management", "shortens the conversation", pass},
	{"compact", "shortens the conversation", pass},
	{"model-context-window-exceeded", "a reason to stop", pass},
	{"fast-mode", "speed", pass},
	{"code-execution", "the provider's code execution", pass},
	{"web-fetch", "the provider's web fetch", pass},
	{"mcp-client", "servers that the provider connects to", pass},
	{"files-api", "files that the provider keeps", pass},
	{"skills", "programs that the provider keeps", pass},
}

var betaDate = regexp.MustCompile(`-(\d{8}|\d{4}-\d\d-\d\d)$`)

// Betas returns those values of an agent's header anthropic-beta that may be sent. The others
// are left out: a provider that misses one refuses the fields that need it.
func Betas(header string) []string {
	const most = 32
	var out []string
	for value := range strings.SplitSeq(header, ",") {
		value = strings.TrimSpace(value)
		date := betaDate.FindString(value)
		known := slices.ContainsFunc(betas, func(r row) bool { return r.name == strings.TrimSuffix(value, date) })
		if known && date != "" && len(out) < most && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	return out
}
