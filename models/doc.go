// Package models is metered inference: an agent reaches language models over plain HTTP on
// its own loopback, without a key, and pays for each call from its budgets.
//
// Parsing and deciding are in separate processes, and only clove-upstream holds keys:
//
//	agent ── 127.0.0.1:8411 ──▶ clove-models ══ typed calls ══▶ control, in cloved or,
//	         HTTP, JSON          parses; no key,                without cloved, in clove:
//	                             no network, no rights          grant, budget, route
//	                                  ║ body, answer                  ║ typed orders
//	                                  ╚══════════════════════▶ clove-upstream ── TLS ──▶ provider
//	                                                            keys; measures usage
//
//	models/format    reads requests and writes errors, in the formats of the providers
//	models/usage     reads what a provider reports that a call used
//	models/config    models.yaml: providers, models, prices, who may use them
//	models/route     which target of a model serves a call
//	models/link      the messages between the processes
//	models/front     the HTTP server of clove-models
//	models/upstream  the HTTP client of clove-upstream
//	models/scripted  a provider for tests and the first minute: answers from a script, and echo
//	models/control   root's side: decides, reserves, settles, and keeps the two processes
//
// The listener is the identity: each sandbox has its own on its loopback. The supervisor
// makes it before the agent starts, keeps a copy, and passes it to clove-models. So a
// clove-models that dies is replaced, and connections wait meanwhile.
//
// clove-models serves all agents of one owner. If it is taken over, it can use what the
// agents of this owner may use, within what control has reserved, and what it used is what
// clove-upstream has read from the provider.
//
// This package has the types that the others share, and the table of subscriptions.
package models
