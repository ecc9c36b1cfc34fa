// Package secrets has the terms of secrets that programs use and never have: for which hosts and requests a
// secret is, where a request carries it, and what a sandbox has in its place.
//
//	Terms        what a user says of a secret; Check refuses what means nothing
//	Rule         "GET /repos/**": a method and a pattern of paths
//	Path         the one form of a request's path that rules are matched with
//	Placeholder  the text in the sandbox, which is replaced on the way out
//	SSH          for which user on which hosts a private key signs
//	Mount        NAME:env=VAR and the like: how a run gets a placeholder, an ssh agent, or the value in a file
//
// It refuses to keep or see a value: secrets/sealed encrypts them, kernel/secrets keeps them, and
// egress/swap puts them into requests. So the process that reads an agent's bytes may import it.
package secrets
