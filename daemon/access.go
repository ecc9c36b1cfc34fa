package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/runtime"
)

// request is one request on its way to its handler. Its context ends with the connection, when
// the request is cancelled, and for a request without an end of its own when cloved ends
// (bounded).
type request struct {
	context.Context
	peer   caller
	method string
	run    agent.Run       // of a method with AccessOwner: the run that it is about
	id     json.RawMessage // of the request, for its notifications
	call   string          // its id in the audit log; empty: it is not recorded, or by the Kernel
	made   agent.ID        // the run that it made, for the audit log
	// note sends a notification of the request's. It fails when the caller has gone or does
	// not read.
	note func(method string, params any) error
}

// parameters are those of one request. They are decoded once, before the access rule, which
// needs the run that they name.
type parameters struct {
	text  json.RawMessage
	value any   // of the row's type; with wrong as far as it could be read
	wrong error // refuses the request after the access rule
}

// handler serves one method.
type handler struct {
	api.Method
	serve func(c *request, p parameters) (any, error)
}

// on serves a row: the compiler compares the types of the function with those of the row.
func on[P, R any](row api.Row[P, R], serve func(*request, P) (R, error)) handler {
	return typed(row.Method(), serve)
}

// onLater serves a row whose answer is made when the ledger has space for it.
func onLater[P, R any](row api.Row[P, R], serve func(*request, P) (later, error)) handler {
	return typed(row.Method(), serve)
}

func typed[P, A any](m api.Method, serve func(*request, P) (A, error)) handler {
	return handler{m, func(c *request, p parameters) (any, error) {
		if p.wrong != nil {
			return nil, p.wrong
		}
		return serve(c, p.value.(P))
	}}
}

// dispatcher gives requests to their handlers: it checks access, counts and traces. One is
// shared by all connections, so nothing in it changes after the start.
type dispatcher struct {
	handlers map[string]handler
	cache    *cache
	lost     func(reference string) (agent.Run, error) // of a layer without a record
	approver func(uid uint32) bool                     // may answer questions of all runs
	streams  *slots                                    // requests that notify until they are cancelled
	meter    *metrics.Meter
	tracer   *traces.Tracer
	entries  func(audit.Entry) error // of the audit log; nil: there is none
	log      *slog.Logger
}

// allow applies the access rule of a method. A run that the principal does not own is
// reported as not found, so that users do not learn what others run.
func (d dispatcher) allow(peer principal, m api.Method, p parameters) (agent.Run, error) {
	if peer.isAgent() {
		// Refused without a look at the rule: no row of the table is for agents.
		return agent.Run{}, api.Failure(api.CodeDenied, "ask the owner of the run", "%s is not for agents", m.Name).By("", api.RuleMethods)
	}
	switch m.Access {
	case api.AccessRoot:
		if !peer.root() {
			return agent.Run{}, api.Failure(api.CodeDenied, "use sudo", "%s is for root", m.Name).By("", api.RuleMethods)
		}
	case api.AccessSelf:
		return agent.Run{}, api.Failure(api.CodeDenied, "the agent calls it over its own socket", "%s is for agents alone", m.Name).By("", api.RuleMethods)
	case api.AccessOwner, api.AccessAgent:
		var name string
		if about, is := p.value.(interface{ AboutRun() string }); is {
			name = about.AboutRun()
		}
		switch {
		case name == "" && p.wrong != nil:
			return agent.Run{}, p.wrong
		case name == "":
			return agent.Run{}, api.Failure(api.CodeParams, `say "run":"NAME"`, "no run is named")
		case ofLost[m.Name] && strings.HasPrefix(name, runtime.LostPrefix):
			return d.allowLost(peer, name)
		}
		// Another process may have stored the run, or its name, a moment ago.
		if err := d.cache.refresh(); err != nil {
			return agent.Run{}, err
		}
		run, err := d.cache.resolve(name, peer)
		if err != nil && ofApprovers[m.Name] && d.approver(peer.owner.UID) {
			if other, found := d.cache.get(agent.ID(name)); found {
				run, err = other, nil
			}
		}
		if err == nil && !ofRecords[m.Name] {
			err = run.CheckOwn()
		}
		return run, err
	}
	return agent.Run{}, nil
}

// allowLost gives a layer without a record to its owner. To others it is reported as one that
// does not exist.
func (d dispatcher) allowLost(peer principal, reference string) (agent.Run, error) {
	run, err := d.lost(reference)
	if err == nil && !peer.sees(&run) {
		run, err = d.lost("")
	}
	return run, err
}

// ofLost are the methods that also open a layer without a record.
var ofLost = map[string]bool{methods.RunDiff.Name: true, methods.RunApply.Name: true}

// ofApprovers are the methods that users whom the configuration names may call about all runs.
var ofApprovers = map[string]bool{methods.ApprovalRespond.Name: true}

// ofRecords are the methods about one run that need only its record, which is all that
// cloved has of an OCI container. A method that is missing here refuses such a run.
var ofRecords = map[string]bool{methods.RunGet.Name: true, methods.RunWait.Name: true, methods.RunRemove.Name: true}
