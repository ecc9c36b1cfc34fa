// Package model calls a language model, always as a stream, at the base URL that clove sets in the
// environment. It has two formats: OpenAI's chat completions and Anthropic's messages. Which one a
// model is served in is asked once, with GET models/NAME; a server that does not say has chat
// completions. The messages of this package are the same for both.
//
// What a model sends is bounded as it is read: a line of the stream, the whole answer and the
// number of tool calls. Behind a bound the connection is closed and the answer is a Failure, so
// that no answer exhausts memory. A call is repeated a few times where a repetition can help (the
// server is busy or not reachable, the stream broke off) and the server does not say otherwise.
//
// The package keeps nothing and follows no redirection.
package model
