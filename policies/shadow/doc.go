// Package shadow computes what a run's shadow policy would have refused. Its input is values:
// the spec, the counters of the run, and the names of grants. Package egress/broker asks the
// shadow's network rules itself, connection by connection; runtime collects all of it for the
// record.
//
// A shadow is compared with the run's own policy place by place, by the keys of a document:
//
//	wider    it allows more than the run's own policy: there it can say nothing
//	unseen   it allows less, and nothing was looked at that would show the difference
//	decided  all others
//
// It refuses nothing, and opens nothing.
package shadow
