// Package audit is an append-only, hash-chained log of what was decided and done.
//
// A log is a directory:
//
//	DIR/00000000000000000001.jsonl  a segment: one record a line, named for its first record
//	DIR/hashes                      the Merkle tree (tlog's stored hashes); rebuilt from the segments
//	DIR/head                        the last acknowledged record, and how many entries wait in memory
//	DIR/checkpoints                 signed tree heads, one JSON object a line
//	DIR/begin                       a signed note on where the chain begins, once records were removed
//	DIR/lock                        locked (flock) by the one process that writes
//	DIR/runs/ID                     the log of a foreground run that had no cloved
//	DIR/linked/ID                   the same, since a record of kind link covers it
//
// Records are numbered from 1, without a gap. A record is one line of printable ASCII and
// holds the hash of the record before it, so a change, removal, insertion or exchange breaks
// the chain at that place. The hash is SHA-256 of a zero byte and the line (RFC 6962's leaf
// hash), and so it is also the record's leaf in the tree. Checkpoints are signed notes over
// the tree's size and root.
//
// # Writing
//
// One goroutine writes: it takes what has gathered, numbers it, writes it with one call,
// makes it durable with one fdatasync, notes the new end in head, and then answers.
//
//	Append     waits until the entries are durable
//	AppendEnd  the same, and may use the reserve of a full disk
//	Enqueue    returns at once; durable within flushAfter, lost if the process is killed before
//
// The size of the segment in use is allocated when it is made. Append leaves the reserve at
// the segment's end alone: if the disk is full and no next segment can be made, Append fails
// with ErrStorage and the ends of what runs can still be written. A log whose first segment
// cannot be allocated opens all the same, with what reserve there is.
//
// Enqueue bounds what one principal writes (flood.go): entries beyond that are counted, and a
// record of kind gap has their number and kinds.
//
// # Removing
//
// Remove removes the oldest segments beyond a size or an age, after it has verified them. A
// record of kind remove says so, and begin has what following the chain from there needs:
// the hash of the last removed record and the right edge of the tree. The hashes of removed
// records stay, so older checkpoints can still be compared. begin is written first: what a
// kill leaves of the older segments is ignored, and removed the next time.
//
// # After a crash
//
// head is written without a sync after each commit, and before its callers are answered. It
// survives the death of the process, because the kernel has it. So what is behind head in
// the last segment was never acknowledged, and Open cuts it off. Any other damage is an error
// that names the first bad record. If the host itself stopped, head may be older than the
// records. Then what head does not cover is cut only from the first line on that is not a
// sound record, and fdatasync had made every acknowledged line whole. Readers never take a line
// behind head for a record, and say that it is there unless its writer moves head over it.
//
// Open signs later what it goes on from. So it refuses a log whose newest checkpoint is not good
// or does not fit to the stored hashes, or is more than uncoveredMax records behind.
//
// head also counts the entries that Enqueue took and no segment has yet. Close marks head as
// closed. If Open finds it open, entries may be missing: it appends a record of kind gap with
// the greatest number that can be missing, or without a number if the host stopped, since
// then the count may be as old as head.
//
// # What it refuses
//
// It never changes a record, removes none that Remove is not asked for, does not repair a damaged log, and stores no
// contents: an entry has digests of arguments. It knows nothing of grants and budgets; callers
// say what was decided. Root on the host can write a whole new log with the key: only a
// checkpoint that was exported to another place finds that.
package audit
