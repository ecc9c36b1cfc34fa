// Package compare says how two sets of results differ: it pairs attempts at the same task with
// the same seed, and gives the mean of the differences with an interval.
//
// The interval comes from resampling whole tasks, as the seeds of one task are not
// independent of each other. Where the interval holds 0, or where too few tasks were paired
// for one, the answer is that the data cannot tell the two apart.
package compare
