// Package seccomp decides which system calls an agent may make: built-in
// profiles, and docker's profile documents.
//
// # Theory of operation
//
// A profile is data in the OCI runtime specification's form. Nothing here
// loads a filter: Compile turns the data into a BPF program with libseccomp,
// the supervisor sends it with the orders (package initproto), because
// clove-init is built without cgo, and the process that becomes the agent
// loads it just before execve, so every process of the agent runs under it and
// none can shed it.
//
// "standard" is computed, not listed: the calls that docker's default profile
// allows to a container without capabilities, minus the table of refusals,
// with the table of conditions in place of docker's own argument rules. Each
// row carries its reason. A golden file pins the result, so a newer
// moby/profiles changes the filter only where a person sees it.
// "strict" is "standard" minus one more table; it never allows what
// "standard" refuses, which a property test checks. "minimal" never allows
// what "strict" refuses, and is listed: a call is allowed only if a table of
// allowances has it, too, so a newer moby/profiles cannot widen it. Every row
// of a table has a group, the word by which people find it.
//
// Compiling takes milliseconds. So the programs of the built-in profiles are
// embedded (directory ready), each under the digest of its profile: a profile
// that differs in anything is compiled. A test makes them anew and compares.
//
// Decide, Explain, Compare and Warnings answer from the rules, and load
// nothing. A test compares Decide with the compiled program in a BPF
// interpreter, and another that program with the kernel's answers.
//
// # One filter for each agent
//
// PID 1 forks the second stage, which becomes the agent, and then restricts
// itself with "strict". The second stage, also one
// of clove exec, loads the agent's whole filter on one thread, right before
// execve(2); another thread does what is left to do (command clove-init,
// companion). So a profile must allow execve and nothing else: the program can
// replace itself by another one, which is under the same filter. Under "minimal"
// it cannot start one beside itself.
//
// # Reports
//
// The filter has two forms that decide alike. Plain refuses by itself. In
// Reporting each ending with an errno is replaced by one that hands the call to
// the listener (SECCOMP_RET_USER_NOTIF); all paths to the endings stay, so an
// allowed call costs what it costs under Plain. The supervisor answers with what
// Plain answers: Answer runs that program in an interpreter. ENOSYS stays an
// errno, because programs meet it on purpose and often, clone3 first of all.
//
// A Watch hands over calls that the profile allows, too. They are carried out
// after the report. That is for observation alone: what a call's arguments point
// to can change between the report and the call (package notify).
//
// # What a call meets
//
//	native call, listed             allowed, where its arguments satisfy a row
//	native call, refused            EPERM, or the errno in its row
//	socket for NETLINK_AUDIT        EPROTONOSUPPORT, as from a kernel without
//	a filter of its own             as from a kernel without: EINVAL, ENOSYS
//	native call, newer than any     ENOSYS (see below)
//	  that the profile names
//	x32 or 32-bit call              the thread is killed with SIGSYS
//
// ENOSYS comes from runc's patchbpf. It finds the largest number that the
// profile names on each architecture, as far as the libseccomp on this host
// knows the names, and prepends a check to the filter: a larger number gets
// ENOSYS before any rule is asked, so that programs which probe for a new
// call fall back as on an older kernel. A hole below the largest number, and
// a call that a row refuses, get the default action. clone3 is refused with
// ENOSYS by its own row: its flags are behind a pointer, where no filter can
// look, and C libraries fall back to clone on ENOSYS only.
//
// Calls of a foreign architecture are killed rather than refused: libseccomp
// gives a filter one action for all of them, and its default is to kill. No
// other is wanted: each number means another call there (int 0x80 reaches the
// i386 table from any 64-bit program), no 64-bit program comes there by
// accident, and a lone SIGSYS in the record is easier to read than EPERM.
//
// # Arguments
//
// The filter sees 64-bit registers; the kernel reads most arguments as 32-bit
// int. A rule that compares the whole register is passed by setting a bit
// that the kernel drops. Every condition of the built-in profiles therefore
// compares under a mask of what the kernel reads. There is no masked "not
// equal", and runc turns two conditions on the same argument of one rule into
// two alternatives; "anything but X" is therefore written as the set of masked
// prefixes that X is not in (see except).
//
// # What it refuses to do
//
// It loads no filter, and it does not look behind pointers. It parses no
// document that would let the agent answer for its own calls (trace, notify),
// or that libseccomp or runc would read otherwise than it is written.
package seccomp
