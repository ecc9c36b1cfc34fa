package main

import (
	"strings"
	"testing"
)

func TestADebuggerThatAttaches(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"gdb -q -p 18": true, "/usr/bin/gdb -batch --pid=18": true, "strace -f -p18": true,
		"gdb ./program": false, "strace ls -l": false, "ps -p 18": false, "sh -c true": false,
	} {
		if got := attaches(strings.Fields(line)); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}
