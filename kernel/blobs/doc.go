// Package blobs is the service of bodies that are kept as files: those above api.BodyMost.
//
// # Theory of operation
//
// An upload takes its bytes of its owner's room and of the run's budget (dimension write_bytes), in a
// transaction, before a byte is written. Its parts are written to a file below the directory of blobs without a
// transaction; blob.take has the run's supervisor copy a file of the agent's, with the agent's rights, to the same
// place. At the end the file is read once for its SHA-256, is on the disk, and gets its name; then one
// transaction makes it a blob, and refers to it as an upload of the caller's, which expires. Bodies name a blob by
// its digest (package kernel/blob has the references).
//
// A digest is no right. An agent may read a blob, and refer to it, if a message in its mailbox, a key of its run,
// or an upload of its own does; or by naming a key that it may read. What others have is as what there is not.
//
//	row of an upload ─▶ UPLOAD.part ─fsync, rename─▶ SHA256.UPLOAD ─▶ row of a blob ─▶ removed row ─▶ no file
//
// No file is without a row, but for what a kill leaves between the last two steps or before the fourth: those
// are removed at the start and with each sweep. Files are made for one row, and never used for another.
package blobs
