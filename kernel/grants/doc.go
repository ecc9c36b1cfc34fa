// Package grants is the service of grants: what a run may do is a row, checked at each call,
// expiring, counted, revocable, and only narrower when passed on. Package kernel/grant decides;
// this package keeps the rows, and shows a run's rules of the network among them.
//
// It answers the stage grant of every call (Cover, Use). It knows no other service.
package grants
