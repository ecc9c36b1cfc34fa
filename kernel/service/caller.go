package service

import (
	"clove.run/clove/agent"
	"clove.run/clove/audit"
)

// Caller is the agent or user that calls, and the run that the call is about.
type Caller struct {
	Run   agent.Run // empty: the call is about no run
	Agent bool      // the run's own agent calls, otherwise a user
	UID   uint32    // the user, of an agent its run's owner
	ID    string    // of the call, for what follows from it; empty: the engine makes one
}

// AboutRun reports whether the call is about a run.
func (c Caller) AboutRun() bool { return c.Run.Spec.ID != "" }

// Root reports whether the caller is root itself, and no agent of root's.
func (c Caller) Root() bool { return !c.Agent && c.UID == 0 }

// Principal names the caller as the audit log does.
func (c Caller) Principal() string {
	if c.Agent {
		return audit.PrincipalRun(c.Run.Spec.ID)
	}
	return audit.PrincipalUser(c.UID)
}

// owner is the user to which the entry of a call belongs.
func (c Caller) owner() uint32 {
	if c.AboutRun() {
		return c.Run.Owner.UID
	}
	return c.UID
}

// queue is the caller's place in the fair queue: each agent has one, and each user.
func (c Caller) queue() string { return c.Principal() }
