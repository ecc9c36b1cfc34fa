// Package logs stores what detached agents write: one log for each run, limited in
// size, in two files.
//
//	DIR/log      the newer lines; its first entry, the head, counts what was
//	             removed before the older file
//	DIR/log.1    the older ones, from the last rotation
//	DIR/log.new  the next newer file, with its head, during a rotation
//
// Each entry is one JSON object: a line of output (api.LogLine), a head, a place, or a
// mark that says how many lines a full disk refused. A line of output longer
// than maxLine, or the last one without an end, is cut and marked partial.
//
// Lines are numbered from the log's first one. The numbers are not stored: head, lines
// and marks add up (entry.weight), so every reader of the two files, and the next
// writer, counts the same. Lines that were refused have numbers too. A reader keeps two
// counts: where it is in the log (reader.at), and up to where its caller has the lines
// (reader.seen). It passes on each line behind reader.seen once; where the files begin
// later than that, one mark says exactly how much is missing. This is the same for a
// first reader, for one that resumes behind a number, and for a follower that was
// slower than the rotations.
//
// Every placeEvery bytes there is a place, with the count of all lines before it. A
// reader of the last lines reads back from the end to a place with enough lines
// behind it, and counts from there.
//
// A rotation prepares log.new, renames log to log.1, then log.new to log. So one rename
// replaces both log.1 and the file whose head counts up to it. A process that is killed
// between the two renames leaves log.new as the newer file: readers accept it as that,
// and the next Open completes the rotation. A write that is cut short leaves half an
// entry. It gets a line end and is not counted; the file is not truncated, because a
// reader may be behind it already.
//
// The supervisor of a run writes its log, so output is kept whether cloved lives or
// not; cloved only reads the files. The log is removed with the run's record (package
// runtime).
//
// A log of what calls of models said (Calls) has the same form; there each call is written as
// a whole.
//
// It refuses to delay the agent: a write that fails drops lines, counts them, and
// never waits. If the supervisor is killed before it could write the mark for dropped
// lines, their number is lost.
package logs
