// Package grade computes the score of an attempt from the files that it left and the output
// of a grader's command. The command itself is executed by package run, in a sandbox that
// the agent never touched.
//
// What it reads is hostile: paths are opened below the attempt's folder only (os.Root), and
// as much as a bound of each file.
package grade
