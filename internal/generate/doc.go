// Command generate writes what follows from the table of methods: the modules of the clients
// in Python and TypeScript, and the methods of docs/api.md.
//
// `make generate` writes the files of outputs; TestFilesAreCurrent compares them. So a new row
// of api/methods or api/agents is in every client and document when the generator has run.
//
// table.go and objects.go make one model of the rows: two sides (an agent over its own socket, a
// user over cloved's), their methods, and the types below them in an order in which each stands
// behind what it is made of. The files' texts are templates (*.tmpl); python.go, typescript.go and
// document.go say what a kind of JSON value is in each. The texts of methods come from the
// rows, those of types and fields from the comments of packages api, agent and secrets.
//
// It refuses to know any method: special code for one, such as the files of a copy, is in
// the hand-written modules of a client.
package main
