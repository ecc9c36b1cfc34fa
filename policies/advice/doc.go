// Package advice names the flag, or the line of a policy's document, that would let a
// refused action or an ended run pass, and what that change risks.
//
// # Theory of operation
//
// Advice comes from what decides, where that can be asked: the compiled rules of a spec name
// the flag that would allow a connection, and the built-in filters of system calls are tried
// from the narrowest to the widest. Tables hold the rest.
//
// # What it does not do
//
// It changes nothing, and it does not say that something should be allowed.
package advice
