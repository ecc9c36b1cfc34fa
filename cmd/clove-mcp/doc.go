// Command clove-mcp drops all privileges, then serves tools over MCP: package tools/mcp reads what clients
// say, and the other side of a channel decides. clove starts it as clove-gate, with the channel to control as
// descriptor 3.
package main
