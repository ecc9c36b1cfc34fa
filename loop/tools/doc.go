// Package tools has what the agent loop lets its model do: a table of tools, each with a schema
// for the model and a function. They run as ordinary processes and system calls of the loop's own,
// so what they may do is what the sandbox lets the agent do; nothing here is a protection.
//
// What is protected is the loop. A tool's result, the part of a file that is held in memory, the
// names of a directory and a command's time are bounded, and a result that is not whole says what
// is left out and how to get it. Files that are no regular ones are refused, because they could
// have no end.
//
// A mistake of the model's is a result, too, so that it can do better.
package tools
