// Command bench measures clove beside its peers on the same work, and prints
// seven tables. The first says how long the whole command of
// `clove run --rm -- /bin/true` takes, when the agent executes its first instruction,
// how much CPU time it costs, and how much of the host's memory an idle agent takes;
// the second what the way to the network costs; the third is about cloved; the fourth
// about what agents share; the fifth about mail; the sixth about the way to language models; the seventh about policies. The same figures go to a JSON file.
//
// # How it measures
//
// In each round every peer runs once (or 10, or 50 times at once), one peer
// after another, so that a change of the machine's load affects all of them.
// Rounds before the first counted one warm the caches. A ratio is the quotient of the
// medians of the rounds; its spread is that between the quartiles of the quotients of each
// round. Each line names the peer that its ratio is to.
//
// The first instruction is the moment that `date` prints from inside. The
// CPU time is what the kernel charged to the command and everything it
// waited for, processes of the sandbox included.
//
// Host memory is the proportional set size (smaps_rollup, proc(5)) of what
// belongs to an idle agent: the command itself and its descendants without
// the agent. Pages of a program's file are shared among all that run it, and the
// kernel can drop them; anonymous memory is each agent's own.
//
// # Engines
//
// A runtime's calls are measured from the place of a shim, which is this binary in
// another role: create, start, the program's end, delete, in each round for runc, for
// clove-oci, and for clove-oci with an annotation that asks for a deadline, which a
// monitor enforces. The program's own time is not counted. The CPU time of the whole life
// includes the first process and the monitor, that of a call what the call waited for.
//
// `docker run --rm` is measured in an isolated environment like those of
// integration/engines: a dockerd of the benchmark's own, in namespaces of its own, with
// data in memory and an image that is made there. The ratio is to the same command with
// the runc of the engine's package. The runc whose library clove is built with is
// measured too, so that a difference of versions is not taken for clove's.
//
// # The network
//
// The second table is about the way to the network: a connection that the client makes
// itself, through the gate, through tinyproxy and through squid. Clove, the proxies and
// the clients run in a network namespace of the benchmark's, the servers in
// another; no packet leaves the two. The client is this binary in another role, one on
// each way for the whole run, which takes orders as lines of JSON; clove's is in a
// sandbox. A new connection is measured from connect to the first byte of an answer; the
// time beyond the direct connection's median of the same round was added by the way. The ratio is to the
// better of the two proxies in the same row.
//
// # The daemon
//
// The third table is about one cloved at a time. The first has ten thousand
// records of invented runs, and no agent: how soon it is ready, how long
// the whole command `clove ps` takes, how many calls it answers, and how long
// an event takes to the last of a hundred followers. The second has five
// hundred idle agents, started by sixteen clients: how many of them a second,
// how much of the host's memory each takes (proportional set sizes of its
// supervisor and of clove-init, and what cloved grew by), and how long the list of
// them takes. The aims are for two cores.
//
// # What agents share
//
// The fourth table is about an agent's calls. The agent is this binary in another role, in
// a sandbox; it is a Go program, so that no interpreter is in the measurement. It reserves
// one unit of a budget and releases it again, in turn, each time with an entry of the audit
// log, alone and as 64 callers at once: in clove, over its socket and through cloved; in
// SQLite, in a file on a folder that it shares with the host, by Python's own module; in
// Redis, a server outside of the sandbox whose socket is in that folder. A second clove
// has the rows of 10 000 other agents beside it.
//
// No method of an agent's takes a reservation that was made ahead: services of clove's do. It is
// measured at the Go API (BenchmarkSpending in kernel), and so is the gain of 64 callers where no
// socket is in the way (BenchmarkKernelUpdate in store), by `make microbench`.
//
// The cost of an agent that floods with calls for another one: the slowest hundredth of this one's
// checks, beside the flood and beside as much processor time that is used without a call.
//
// The cost of the socket for an agent that does not use it: the start of `clove run` without a
// socket beside itself, beside one with a socket and beside an earlier clove (BEFORE), in
// turn, without cloved; and the host's memory for idle agents with and without a socket.
//
// # Mail
//
// The fifth table is about messages between agents. 64 sandboxes have this binary as their agent, each with a
// mailbox; the first sends alone, all send at once, each to its own mailbox, and the first sends to the second, which
// waits. Every message is durable before its answer, and beside it a budget is charged, a bound of the mailbox is held and an
// entry of 300 bytes is added to an audit log. SQLite is Python's module in one of the sandboxes, with 64 threads; Redis a server outside, to
// which each agent has a connection by a socket in a folder; NATS JetStream a server outside whose clients are outside
// too, because it has no socket in a folder. It has no transaction over several streams, so its entry is in the message. What
// was sent is taken out of the mailboxes behind each measurement. All keep their files in the same folder of the disk.
//
// The moment of a commit cannot be seen from outside. A receiver that waits gets the message, and the sender its answer, behind
// it; so the message took at most the time from that answer to its arrival, and the way of the answer, which is
// less than a call and its answer without a change.
//
// A second cloved has 10 000 runs that have ended, each with a mailbox. What one takes of kernel.db is the difference of a
// copy of the file before and after, with 64 of them in a transaction.
//
// # Models
//
// The sixth table is about the way to a provider of language models: a client that asks it
// itself, nginx, which passes everything through, Portkey's gateway from npm, and clove, whose
// client is in a sandbox. All of it is in a network namespace that has a loopback and nothing
// else, so no peer reaches anything but the provider, which is this process. The client is this
// binary in another role, one on each way for the whole run. Portkey 1.15.2 answers no stream
// with the newest version of its HTTP server that npm would choose (TypeError: immutable), so
// integration/clients/gateway pins an earlier one.
//
// The provider answers at a fixed pace, or without a delay where rates are measured. The first
// token of a stream says how much of the wait for it was the provider's; the client subtracts
// that, so that the provider's timer is not in the figures. The time beyond the
// direct connection's median of the same round was added by the way. The ratio is to the gateway.
//
// Host memory is that of the processes between client and provider, after a few calls and with
// streams that are open, at the start of the run: later their heaps have free memory.
//
// # Policies
//
// The seventh table is about an agent that works under a policy. The agent is this binary in
// another role, which times four loads by its own clock, so that no start is in the figures:
// system calls that do next to nothing, files of the base system that are looked at and read,
// files that are made, renamed and removed in a file system in memory, and programs that are
// executed. In each round every peer does all of them once: runc with Docker's default filter of
// system calls, clove under standard, and clove under sandboxed with its filter strict. With
// BEFORE an earlier clove is one more. runc has the host's own files as its root, and clove an
// overlay over them.
//
// How long it takes to load a document of a usual size with what it extends, and to decide on one
// action of each kind by it, is measured by BenchmarkDocument in policies/expect.
//
// # What it refuses
//
// It judges nothing: no figure makes it fail, because figures depend on the machine. A
// peer that is missing has a row that says why.
package main
