//go:build root

package integration

// failpoint is one moment in a run's life, and what can happen there.
type failpoint struct {
	name   string
	at     string // which of several, if one place in the code serves many events
	errors bool   // an error can be injected; a death always can
}

// noted are the changes to the store, each before its transaction is committed, and after.
func noted(whats ...string) (all []failpoint) {
	for _, what := range whats {
		all = append(all, failpoint{"storeNoted", what, true}, failpoint{"storeCommitted", what, false})
	}
	return all
}

// launched are the steps of a launch.
func launched(steps ...string) (all []failpoint) {
	for _, step := range steps {
		all = append(all, failpoint{"launchStep", step, true})
	}
	return all
}

// inCloved are the failpoints in cloved, in the order of the requests.
var inCloved = append([]failpoint{
	{"startAsked", "", true}, {"startQueued", "", false}, {"beginTurn", "", false},
	{"starterSpawned", "", true}, {"starterOrdered", "", true}, {"starterAnswered", "", false},
	{"pauseAsked", "", true}, {"resumeAsked", "", true}, {"updateAsked", "", true},
	{"againQueued", "", false}, {"endNoted", "", true}, {"removeEmptied", "", true},
	{"deathSeen", "", false}, {"leftoversCleaned", "", true}, {"leftoversRecorded", "", false},
}, noted("queued", "renamed", "updated", "paused", "resumed", "stop-asked", "requeued", "removed", "lost", "ended")...)

// inSupervisor are the failpoints in a supervisor.
var inSupervisor = append(append([]failpoint{
	{"superviseOrdered", "", false}, {"superviseOpened", "", true},
	{"registerDirectory", "", true}, {"registered", "", false},
	{"startedUnnoted", "", false}, {"superviseListening", "", false}, {"superviseAnswered", "", false},
	{"updateApplied", "", true},
	{"finishKilled", "", false}, {"finishTornDown", "", true}, {"finishRecorded", "", false}, {"superviseEnded", "", false},
}, launched("network", "gate", "rootfs", "streams", "create", "start", "verify", "files", "orders")...),
	noted("starting", "started", "updated", "ended")...)
