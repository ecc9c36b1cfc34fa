// Package python holds the Python client of the agent socket, sandboxes for frameworks in
// Python, and the tests that keep the client equal to the API.
//
// clove/api.py is generated from the API table by `go test ./sdk/python -update`: one
// method for each row that agents may call, one class for each type of an answer, one
// exception for each error word. The other modules are written by hand: connections,
// repetition of calls, notifications, and the command line `python3 -m clove`.
//
// Outside of sandboxes, clove/sandbox.py starts and drives one over cloved's socket, and
// clove/keeper.py ends it with its owner. clove/inspect_ai.py and clove/harbor.py are what
// Inspect and Harbor call; only these two import a framework.
//
// The tests in tests/ run under `go test ./sdk/python`, against a socket server of their
// own that answers as clove-gate does. Those in tests/with_*.py need a cloved, and run in
// integration.
//
// It refuses to know more than the table: what a grant means or what a budget allows is
// decided outside of the sandbox.
package python
