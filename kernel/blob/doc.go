// Package blob keeps which blobs there are and what refers to them: bodies that are kept as files, outside of
// kernel.db, and are named by their SHA-256.
//
// # Theory of operation
//
// A blob belongs to an owner (a user): the same content of two owners is two blobs, so that no owner can find
// out what another has. Its row names its file. What a message, a key or an upload refers to is kept by
// holder: the key of a mailbox, of a key or of an upload. A service that keeps a body calls Refer in the transaction
// that stores it, and Drop in the one that removes it. What has no reference is removed, with its file, when the
// transaction has ended (package kernel/blobs).
//
// It opens no file and decides nothing about rights.
package blob
