// Package expect compares a policy with what its author expects of it.
//
// # Theory of operation
//
// A document (Document) names a policy and lists single actions, each with the answer that
// is expected: allow or deny. A Decider answers them from the resolved spec. It asks what
// also decides in a run: the compiled rules of the network (egress), the filter of system
// calls (seccomp) and the plan of the file system (rootfs) through runtime.Predict, and what
// a grant covers (kernel/grant). A connection needs the filter too: without socket(2) no
// rule of the network is asked.
//
// Found compares instead with what a probe found in a sandbox (policies/probe). The
// sandbox's record decides over connections: the gate accepts a connection before it
// decides, so the probe alone cannot tell a refusal from a server that ended it.
//
// # What it does not do
//
// It decides without looking at this host's disk and without its network: the existence
// and permissions of files, and the addresses of names are not known. A
// program can be executed, as far as this package knows, wherever the file system allows it
// and a list of programs, compared as it is written, has it.
package expect
