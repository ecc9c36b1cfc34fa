// Package logs keeps what detached agents write: one log for each run, capped,
// in two files.
//
//	DIR/log      the newer lines; its first entry, the head, counts what lies
//	             before the older file and is gone
//	DIR/log.1    the older ones, from the last rotation
//	DIR/log.new  the next newer file, with its head, while a rotation goes on
//
// Each entry is one JSON object: a line of output (api.LogLine), a head, or a
// mark that says how many lines a full disk refused. A line of output longer
// than maxLine, or the last one without an end, is cut and marked partial.
//
// Lines are numbered since the log's first one, and numbers stand at no line:
// head, lines and marks add up (entry.weight), so everybody who reads the two
// files, or continues them, counts the same. What was refused has numbers too.
// A reader has a place in the log, and knows up to where its caller was told
// (reader.at, reader.seen). Whatever it finds behind the latter is given once;
// where the files begin later than that, one mark says what is missing, exactly.
// This is the same for a first reader, one that resumes behind a number, and a
// follower that was too slow for the rotations below it.
//
// Every placeEvery bytes stands a place: how much there ever was before it. Who wants
// the last lines reads back from the end to one with enough of them behind it, and
// counts from there.
//
// A rotation prepares log.new, moves log to log.1, then log.new to log. So
// log.1 and the file whose head counts up to it change hands in one rename. A
// kill between the two leaves log.new as the newer file: readers take it as
// that, and the next Open ends the rotation. A write that is cut leaves half an
// entry; it gets an end, never a shorter file, because a reader may stand
// in it, and nobody counts it.
//
// The supervisor of a run writes its log, so output is kept whether cloved is
// alive or not; cloved reads the files and nothing else. The log goes with the
// run's record (package runtime).
//
// It refuses to hold the agent up: a write that fails drops lines, counts them,
// and never waits. What was refused and not yet told when the supervisor is
// killed is forgotten: there was no place to note it.
package logs
