// Package lease keeps messages in boxes: what mail and jobs have in common.
//
// A box is durable, bounded, and belongs to a run, a name, a topic's subscriber or a queue of jobs. Its
// messages are in the order of their priority, and those of one priority in the order in which they were
// put. A message is put once, stays until it is taken out, and is never dropped: one that has expired, or
// that its receiver rejects, becomes a dead letter of the same box, which people read and put back.
//
// An empty box costs one small row.
//
// It decides nothing about rights, and knows no agent: packages kernel/mail and kernel/jobs do.
package lease
