// Package traces sends spans of cloved's work to OpenTelemetry, if its standard
// environment variables ask for it.
//
//	run.start ────────────── the API call, below the caller's own span
//	├── queue                from joining the queue to leaving it
//	├── start                until the agent executes, or does not
//	│   └── launch.network, launch.rootfs, …   the launch's steps, as the supervisor timed them
//	├── agent.grant.check, … each call of the agent over its own socket
//	└── run                  the agent's life, with the status of its end
//
// A run keeps the trace that it belongs to in the store, so its life joins it
// also when cloved was restarted in between. A start by a restart policy is a
// trace of its own, linked to the first. A run of the foreground has a life
// and nothing before it.
//
// It refuses what is secret: attributes are methods, codes, ids, names, steps
// and statuses; no argument, no environment, no output. And it refuses to
// guess: an exporter or protocol that it does not have stops cloved's start.
package traces
