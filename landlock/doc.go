// Package landlock makes Landlock rulesets, with which the kernel limits a process's access to
// files and TCP ports, beside mounts, permissions and namespaces.
//
// # Theory of operation
//
// A ruleset is a descriptor. The process that builds the sandbox makes it from outside, as root,
// before the first program of the agent runs (Rules.Make). The process that becomes the
// agent only enters it, with landlock_restrict_self(2), right before its filter is loaded.
// So no path of a rule is looked up where an agent could have replaced it, and each process
// that joins the sandbox later gets the very same rules:
//
//	supervisor                              clove-init, second stage
//	  opens each place below /proc/PID/root
//	  ruleset ──── with the orders ───────▶ ids, limits, landlock_restrict_self, filter, execve
//	  └─ keeps it for exec sessions
//
// A rule belongs to a directory or a file, not to its name, and covers what is beneath it.
// A file beneath no rule is refused (EACCES), even if a process reaches it by a descriptor
// of a directory outside of its root. A file is neither moved nor linked to where it would have
// more rights. Rules only add up: a read-only place inside of a writable one cannot be written
// as rules, and stays the duty of the mounts.
//
// # What it refuses to do
//
// It makes no ruleset where the kernel knows no renames between directories (before version
// 2 of the interface): Landlock would refuse them all. It has no rules for signals and
// abstract sockets: each process that joins the sandbox is in a domain of its own, and they
// would be cut off from each other.
package landlock
