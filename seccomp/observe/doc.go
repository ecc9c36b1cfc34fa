// Package observe finds out what the rest of a sandbox refuses: read-only mounts, mounts
// without programs, what a list of reads leaves out, and missing capabilities. The filter lets such
// calls pass, and the kernel refuses them without a report.
//
// # Theory of operation
//
// A filter hands the calls of the tables here to its listener, and carries them out when this
// package has looked (seccomp.Watch). The tables select by argument where they can: an open
// for reading costs nothing, unless there is a list of what may be read. For each call the
// package reads its path, opens the same file through /proc/PID/root without touching it
// (O_PATH), and asks the mount whether it is
// read-only. Of a read it compares the path without links with the list's. A call that
// would also fail on a writable mount, or under another list, because of what exists, or of an
// owner and a mode, is left out: the sandbox is not why it fails.
//
// The look comes before the call, and another thread of the agent can change the path in
// between. So what is found may be wrong where an agent wants that. It is a report, and
// decides nothing: the mount and the capability sets refuse, whatever was reported.
//
// # What it does not see
//
//   - what is not there: a file of the host that does not appear inside is "no such file"
//   - refusals by owners and modes, which a program meets without a sandbox as well
//   - rights that an access list gives or takes, and modes of directories above the last one: a
//     finding can be missing, or one too many
//   - descriptors that were opened before, and io_uring, which every filter of clove refuses
//   - paths through a link of /proc, such as /proc/self/fd/3; the interpreter of a script, which
//     the kernel opens; and a file of a list of reads by a name that the list does not have: it is
//     read, and reported as refused
//   - further names of one call beyond its first two paths
package observe
