// Package api is the contract between cloved and its callers: what goes into a
// method, what comes out, what can go wrong, and what a row says of a method. The
// rows are in package api/methods, those that agents call in package api/agents.
//
// # The wire
//
// JSON-RPC 2.0 over a Unix socket, one object or batch a line:
//
//	→ {"jsonrpc":"2.0","id":1,"method":"run.get","params":{"run":"trader"}}
//	← {"jsonrpc":"2.0","id":1,"result":{"run":{…}}}
//
// A method that streams answers late: first come notifications that carry the
// request's id, then the response. request.cancel, or closing the connection,
// ends it.
//
//	→ {"jsonrpc":"2.0","id":2,"method":"event.follow","params":{"after":17}}
//	← {"jsonrpc":"2.0","method":"event.happened","params":{"id":2,"event":{"sequence":18,…}}}
//
// A session (run.attach, run.exec, run.copy_in, run.copy_out) is a stream in
// both directions. It has a connection of its own: its request is the first
// one there and the last.
//
// Every error has one of a closed set of codes, and in its data the code's
// stable word, the step that failed, the rule that decided and a hint.
//
// # Change
//
// Each method has a tier. Package api/contract has the whole contract as data, and compares
// it with the accepted one of its version. Fields and methods may be added; a test fails when
// one is taken away or narrowed. internal/generate writes docs/api.md and the clients of other
// languages from the same table.
//
// A tag `col:"HEADING,form"` of a field says how the command line shows it in a table
// (cmd/clove/verbs). The wire does not have it.
//
// It refuses to hold behaviour: daemon serves the table, client asks it.
package api
