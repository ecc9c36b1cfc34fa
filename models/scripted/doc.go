// Package scripted is a provider of language models that answers from a script, for tests
// and for runs without a key. It is an http.Handler, which speaks
//
//	POST /v1/chat/completions         OpenAI
//	POST /v1/responses                OpenAI
//	POST /v1/messages                 Anthropic
//	POST /v1/messages/count_tokens    Anthropic
//
// with and without streaming. docs/script.yaml shows every key of a script.
//
// The first turn whose conditions all hold answers. If there is none, the answer is an error
// with status 400. An answer depends on its request alone, which contains the conversation:
// the number of the turn is one more than the answers in it. So a script gives the same
// answers however often a client tries again, and to many clients at the same time.
//
// Without usage, a token is four bytes of text, rounded up. A text that has more tokens than
// the request allows is cut, as a provider would. What a token costs stands in models.yaml, as
// for every provider; nothing where it does not.
//
// It accepts what a provider would refuse: unknown fields, contents of any form, any key. It
// keeps no state, follows no URL, and executes nothing.
package scripted
