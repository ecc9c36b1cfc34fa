// Package agents holds the rows of the contract that an agent calls over its own socket.
//
// It is apart from package api/methods because clove-gate decodes what an agent sends:
// a program that imports only this package contains the parameter types of no other method.
//
// It refuses to hold types and behaviour: package api has the types, kernel serves the rows.
package agents
