// Package grants is the service of grants: each is a row that lets a run do something, checked
// and counted at each call, revocable, with an expiry, and only ever narrowed when passed on.
// Package kernel/grant decides; this package keeps the rows, and shows a run's rules of the
// network among them.
//
// It answers the stage grant of every call (Cover, Use). It knows no other service.
package grants
