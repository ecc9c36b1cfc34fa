// Package sdk holds the clients in Python and TypeScript, and their tests.
//
// In both, `make generate` (internal/generate) writes the API's part from the table of methods:
// one method for each row, the types of parameters, answers and notifications, one error class for
// each error word, and the standard level's spec. By hand are the agent's connections, repetition
// of calls and notifications, and the streams and sessions of cloved's socket with what is made of
// them: start, exec, copies, logs.
//
// The Python package also has a command line, and what Inspect and Harbor call; only
// clove/inspect_ai.py and clove/harbor.py import a framework.
//
// The tests in each client's folder tests run under `go test ./sdk`, against socket servers of
// their own. The examples run here against the code of clove-gate. Tests with a cloved (tests/with_*
// of both) run in integration.
//
// The clients refuse to know more than the table: the meaning of grants and the limits of
// budgets are decided outside of the sandbox.
package sdk
