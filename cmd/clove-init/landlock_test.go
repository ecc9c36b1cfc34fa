package main

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// An agent whose rules were lost on the way does not start without them.
func TestRulesThatAreLost(t *testing.T) {
	t.Parallel()
	for _, confined := range []bool{true, false} {
		failures := make(chan *initproto.ExecFailed)
		go func() {
			runtime.LockOSThread() // for ever: the signal mask ends with the thread
			image, err := newImage("/nonexistent", &initproto.Orders{Argv: initproto.Strings{"x"}, Confined: confined})
			if err != nil {
				failures <- startFailed("test", err)
				return
			}
			failures <- image.execute()
		}()
		failure := <-failures
		if confined && (failure.Step != "landlock" || failure.ExitCode != initproto.ExitStartFailed) {
			t.Errorf("without its rules: %+v", failure)
		}
		if !confined && failure.Errno != unix.ENOENT {
			t.Errorf("control: %+v", failure)
		}
	}
}
