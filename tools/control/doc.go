// Package control is root's side of the doors to tools: it keeps one clove-mcp for each owner, and
// passes it the listener of each run, with a channel whose calls are those of the run's agent. It
// parses nothing that an agent wrote.
//
// A clove-mcp that ends is replaced; connections wait in the listeners meanwhile. One whose owner has
// no run left is ended.
package control
