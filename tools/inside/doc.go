// Package inside runs programs of tools in a live sandbox, for cloved and for clove itself, over
// tools.sock in the run's directory, which root alone may use. The run's supervisor serves it.
//
//	Run, in cloved ── request, with a pipe for each of stdin, stdout, stderr ──▶ Serve, in the supervisor
//	               ◀── how it ended ─────────────────────────────────────────── runtime's Exec
//
// A connection is one program. Its end ends the program, with all that it has started. What the
// program reads and writes goes through the pipes: neither side reads a message in it.
package inside
