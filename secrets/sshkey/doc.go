// Package sshkey has what clove does with ssh keys: it reads the private key of a secret, verifies which host a session is with, and
// signs a user's authentication.
//
// A Key signs nothing but an Auth, whose bytes it makes itself: RFC 4252, section 7, for the service ssh-connection. It refuses keys
// with a passphrase, and signatures with SHA-1.
package sshkey
