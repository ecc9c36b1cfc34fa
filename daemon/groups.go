package daemon

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// handlers joins the tables of the handler groups: each serves one group of the API's methods with
// the few parts of cloved that it needs, so that a handler's group type names all that the
// handler can reach. Sessions have none (sessions.go).
func (d *Daemon) handlers() map[string]handler {
	all := map[string]handler{}
	for _, group := range []interface{ methods() []handler }{d.system(), d.shared, d.runs(), d.live(), d.layers(), homes{d.sandboxes}, d.logReader(), d.events(), d.containers(), d.inference} {
		for _, h := range group.methods() {
			all[h.Name] = h
		}
	}
	return all
}

func (d *Daemon) system() system {
	return system{options: d.options, started: d.started, cache: d.cache, reconciler: d.reconciler, config: d.config, memory: d.memory(), reload: d.Reload, meter: d.meter, log: d.log, shared: d.shared}
}

func (d *Daemon) runs() runs {
	var asking func(agent.ID) (string, error)
	if d.shared != nil {
		asking = d.shared.kernel.Asking
	}
	return runs{asking: asking, cache: d.cache, records: d.records, reconciler: d.reconciler, sandboxes: d.sandboxes, limits: d.limits(), supervisors: d.supervisors(),
		paths: d.options.Paths, admission: &d.admission, tracer: d.tracer, log: d.log}
}

func (d *Daemon) live() live {
	return live{cache: d.cache, records: d.records, limits: d.limits(), memory: d.memory(), supervisors: d.supervisors(), result: d.runs().result}
}

func (d *Daemon) memory() memory { return memory{host: d.sandboxes, config: d.config} }

func (d *Daemon) layers() layers {
	return layers{sandboxes: d.sandboxes, supervisors: d.supervisors(), readers: d.readers, log: d.log}
}

func (d *Daemon) logReader() logReader {
	return logReader{cache: d.cache, paths: d.options.Paths, watches: &d.watches}
}

func (d *Daemon) events() events { return events{cache: d.cache, meter: d.meter} }

func (d *Daemon) containers() containers {
	return containers{guards: d.guards, records: d.records, log: d.log}
}

func (d *Daemon) limits() admissionRules {
	return admissionRules{cache: d.cache, config: d.config, looks: d.looks, paths: d.options.Paths, models: d.inference,
		secrets: func(run agent.Run) ([]api.Secret, error) {
			all, _, err := d.shared.kernel.Secrets.Of(run, false)
			if err != nil {
				return nil, err
			}
			read, _, err := d.shared.kernel.Secrets.Of(run, true)
			return append(all, read...), err
		}}
}

func (d *Daemon) supervisors() supervisors { return supervisors{d.options.Paths.Run} }

func (d *Daemon) dispatcher() dispatcher {
	all := dispatcher{handlers: d.handlers(), cache: d.cache, lost: d.options.Paths.LostRun, approver: func(uid uint32) bool { return d.config().approves(uid) }, streams: d.streams, meter: d.meter, tracer: d.tracer, log: d.log}
	if d.shared != nil {
		all.entries = d.shared.log.Enqueue
	}
	return all
}

// ledger is that of a new connection. Root's answers are made in places of their own, and
// do not wait for those of users.
func (d *Daemon) ledger(peer caller) *ledger {
	owes := newLedger(peer.owner.UID, d.owed)
	if owes.makes = d.makes; peer.root() {
		owes.makes = d.rootMakes
	}
	return owes
}
