// Package tools has what agents may call: a name, a description, a JSON Schema, and how it runs.
//
// A tool runs in the caller's own sandbox, with the caller's rights. Root decides who may call it,
// reserves what it costs and starts it; it reads neither arguments nor results.
//
//	agent ── 127.0.0.1:8412/mcp ──▶ clove-mcp ══ typed calls ══▶ kernel/tools, in cloved or,
//	         MCP over HTTP           parses; no                  without cloved, in clove:
//	                                 rights                      grant, budget, approval
//	                                                                │ arguments on stdin
//	                                                                ▼
//	                                                             clove-tool, in a sandbox:
//	                                                             checks the arguments, does it
//
//	tools/builtin  what clove-tool does: the built-in tools, and commands from templates
//	tools/schema   JSON Schema
//	tools/link     the messages between root's side and clove-mcp
//	tools/mcp      the MCP server of clove-mcp
//
// clove-tool gets an Order on its stdin. Its stdout is the result, its stderr why there is none, and
// its exit status is one of the Exit constants.
//
// This package has the types that the others share, and the table of built-in tools. It imports
// nothing of clove's.
package tools
