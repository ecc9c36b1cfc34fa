// Package methods holds the rows of the contract that users, root and supervisors call, and
// the table of all methods, in the order of docs/api.md.
//
// The rows that agents call are in package api/agents, so that clove-gate, which agents may
// take over, contains no others.
//
// It refuses to hold types and behaviour: package api has the types, daemon serves the rows.
package methods
