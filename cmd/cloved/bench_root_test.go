//go:build root

package main

import "testing"

// BenchmarkStart is from the first instruction of the start to the word that
// cloved serves, and its end; the aim is less than 100 ms.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s := serveOne(b, "group: root\n", nil)
		s.hears("READY=1")
		s.cmd.Process.Kill()
		s.cmd.Wait()
	}
}
