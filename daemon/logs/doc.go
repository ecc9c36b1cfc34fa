// Package logs keeps what detached agents write: one log for each run, capped,
// in two files.
//
//	DIR/log     the newer lines; its first entry counts what was dropped so far
//	DIR/log.1   the older ones, from the last rotation
//
// Each line is one JSON object (api.LogLine). A line of output longer than
// maxLine, or the last one without an end, is cut and marked partial. When log
// has half of the cap it becomes log.1, whose lines are gone and counted: a
// reader sees the count before the first line that is left. What a full disk
// refuses is counted as well and told as soon as there is space.
//
// The supervisor of a run writes its log, so output is kept whether cloved is
// alive or not; cloved reads the files and nothing else.
//
// It refuses to hold the agent up: a write that fails drops lines, never waits.
package logs
