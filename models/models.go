package models

// Format is the form of one kind of request and of its answer.
type Format string

// The formats.
const (
	OpenAIChat        Format = "openai-chat"        // POST /v1/chat/completions
	OpenAIResponses   Format = "openai-responses"   // POST /v1/responses
	AnthropicMessages Format = "anthropic-messages" // POST /v1/messages
	AnthropicCount    Format = "anthropic-count"    // POST /v1/messages/count_tokens
)

// Family is whose format it is: a provider speaks one family.
func (f Format) Family() Family {
	switch f {
	case OpenAIChat, OpenAIResponses:
		return OpenAI
	case AnthropicMessages, AnthropicCount:
		return Anthropic
	}
	return ""
}

// Family is whose formats a provider speaks.
type Family string

// The families.
const (
	OpenAI    Family = "openai"
	Anthropic Family = "anthropic"
)

// Need is a right that a request needs beside the grant of its model.
type Need string

// The needs.
const (
	ProviderTools Need = "provider-tools" // the provider reaches the network or runs code for the agent
	ProviderState Need = "provider-state" // the provider keeps what the agent sent
)

// Usage is what one call used, in tokens. In excludes what was read from or written to a
// cache. Out includes Reasoning.
type Usage struct {
	In         int64 `json:"in"`
	Cached     int64 `json:"cached,omitempty"`      // read from the provider's cache
	CacheWrite int64 `json:"cache_write,omitempty"` // written to it, CacheWriteLong included
	// CacheWriteLong is kept for the longer of the provider's times, an hour, which costs more.
	CacheWriteLong int64 `json:"cache_write_long,omitempty"`
	Out            int64 `json:"out"`
	Reasoning      int64 `json:"reasoning,omitempty"`
}

// Plus returns what u and v used together.
func (u Usage) Plus(v Usage) Usage {
	return Usage{In: u.In + v.In, Cached: u.Cached + v.Cached, CacheWrite: u.CacheWrite + v.CacheWrite,
		CacheWriteLong: u.CacheWriteLong + v.CacheWriteLong, Out: u.Out + v.Out, Reasoning: u.Reasoning + v.Reasoning}
}
