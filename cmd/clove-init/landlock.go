package main

import (
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// enterDomain puts this thread, which becomes the agent, under the Landlock rules of its
// orders, and no other. It comes before the filter, which may refuse the call. The
// descriptor is close-on-exec, so the agent cannot have it.
func (i *image) enterDomain() *initproto.ExecFailed {
	if !i.confined {
		return nil
	}
	ruleset := ^uintptr(0) // rules that were lost on the way: EBADF
	if i.ruleset != nil {
		ruleset = i.ruleset.Fd()
	}
	if err := raw(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); err != nil {
		return startFailed("landlock", err)
	}
	return nil
}
