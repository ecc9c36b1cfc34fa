// Package usage reads from a provider's answer what a call used.
//
//	provider ── bytes ──▶ Meter.Write ─▶ lines of events ─▶ scanner ─▶ figures, text ─▶ Result
//	                                     (streams only)     (JSON)
//
// A provider's bytes are not trusted. The Meter keeps no part of an answer: it goes
// through the JSON byte by byte with a stack of bounded depth, and keeps only names, short
// values and counts. So lines without an end, streams without an end and answers of any
// size cost no memory, and no event is too long.
//
// Figures are not believed as they are: negative ones are 0, those above MaxTokens become
// MaxTokens, those that shrink keep their highest value, and parts larger than their whole
// are cut. Result.Faults names what was found. A provider that reports less than it did
// cannot be found out here; one that reports nothing is estimated by the text it sent.
//
// Where the figures are is a table of forms, a row for each way in which providers and servers
// report them (forms.go). What a report lacks, Charge estimates.
//
// The streams of OpenAI's chat completions report in a last chunk, those of its responses
// in response.completed, and Anthropic's in message_start and cumulatively in
// message_delta. Where Anthropic's usage has iterations, their sum counts: the figures
// beside them leave out the shortening of the conversation.
//
// The package opens nothing and decides nothing.
package usage
