// Package client asks cloved: one Go method for each row of the contract.
//
//	c, err := client.Dial(ctx, "/run/clove/clove.sock")
//	started, err := c.Start(ctx, api.StartParams{Spec: spec})
//	result, err := c.Wait(ctx, string(started.Run.Spec.ID))
//
// A Client is safe for any number of goroutines. Each call has a connection to
// itself while it lasts; connections are kept for later calls. Ending a call's
// context closes its connection, which cancels the request. Streams and
// sessions have connections of their own.
//
// Errors of cloved's are *api.Error, in which errors.As finds an *agent.Error.
//
// It refuses to retry: only the caller knows whether asking twice is harmless.
package client
