// Package conversation keeps a conversation with a model in a file: a JSON object a line, each
// written whole and synced before anything is done about it.
//
// So a program that was killed goes on from the file. The order of events is
//
//	the model's answer is appended ── its tool calls are made ── each result is appended
//
// and a call without a result behind the last answer was interrupted: it may have been made in
// part. A last line that was not wholly written is removed when the file is opened, and its size
// reported: nothing was done about it yet.
//
// A conversation that has become too large is replaced by a summary (Replace). The original stays
// as conversation.1.jsonl, conversation.2.jsonl and so on: first it gets that name, then the new
// file takes its place by a rename, so that at each moment one whole conversation is there.
//
// A file has one user at a time, by a lock. A file with a line that is no record, or of more than
// maxFile bytes, is refused and left as it is.
package conversation
