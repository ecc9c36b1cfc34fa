// Package learn turns what runs used into the smallest policy document that lets them pass.
//
// # Theory of operation
//
// A run with clove run --learn goes under its policy as every run does, and the supervisor
// notes what it uses (agent.Observed). An Observation is that, with what the run was given. It
// is a file of JSON, which Parse reads strictly and within bounds.
//
//	run ── agent.Observed ── Observation ──┬── Merge ── Observation
//	                                       └── Write ── document, filter
//
// Merge is the union of uses and the maximum of peaks: commutative, associative and idempotent.
//
// Write narrows what the run was given, place by place: the network to the targets that were
// reached, the filter of system calls to minimal and the groups that were used, the places that
// stay writable to those that were written, the programs to those that were executed and loaded
// (with the reason where no list would let the run pass again), and each limit to the peak with
// a margin. If the observation asks for it, only the files that were opened may be read;
// folders stand in for many of them, each with the reason. Nothing gets wider, but for the network with --learn-network allow or ask, whose run
// was wider, too. Under a built-in level the document extends the level, standard or narrower, that has to be
// widened in the fewest places; under a document it extends that one, whose other values no run
// shows.
//
// # What it does not do
//
// A document cannot name single files that may be written, so these decide over whole places; a
// comment says which files they were. It does not judge: all actions of a run are taken as wanted.
package learn
