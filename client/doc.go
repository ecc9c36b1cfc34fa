// Package client calls cloved from Go programs. A call names a row of package api/methods or
// api/agents, which has the types of the parameters and of the result.
//
//	c, err := client.Dial(ctx, api.DefaultSocket)
//	started, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: spec})
//	ended, err := client.Do(ctx, c, methods.RunWait, api.RunParams{Run: string(started.Run.Spec.ID)})
//	for grant, err := range client.All(ctx, c, agents.GrantList, params) { … }
//
// Do and Perform are for methods with one answer, All for lists in parts, Each for streams, Open for
// sessions. Log lines, copies, foreground runs and a supervisor's calls have functions of their own,
// because there is more to them than a call.
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
