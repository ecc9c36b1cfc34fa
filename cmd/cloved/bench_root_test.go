//go:build root

package main

import (
	"testing"

	"clove.run/clove/internal/testhost"
)

// BenchmarkStart measures from the first instruction to the notification READY, and then the
// end. The aim is less than 100 ms.
func BenchmarkStart(b *testing.B) {
	testhost.Root(b) // the wait for the root lock is not part of a start
	for b.Loop() {
		s := serveOne(b, "group: root\n", nil)
		s.hears("READY=1")
		s.cmd.Process.Kill()
		s.cmd.Wait()
	}
}
