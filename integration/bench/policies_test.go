package main

import (
	"strings"
	"testing"
)

// A system where the loads fail, or one that takes no time, would make figures of nothing.
func TestLoadsDoSomething(t *testing.T) {
	for _, l := range loads {
		if ms, err := timed(l.do); err != nil || ms <= 0 {
			t.Errorf("%s: %v ms, %v", l.name, ms, err)
		}
	}
}

// Each way shows the program at another place, and none of them the workspace of the caller.
func TestWaysRunTheSameLoad(t *testing.T) {
	b := &bench{clove: "/bin/clove", runc: "/bin/runc", before: "/old/clove", scratch: "/s"}
	for i, way := range append(confinements, earlier) {
		text := strings.Join(way.command(b, "id", "/s/load/bench"), " ")
		if i == 0 && !strings.HasSuffix(text, "--bundle /s/bundle-load id") || i > 0 && !strings.HasSuffix(text, "-v /s/load:/load -- /load/bench "+roleLoad) {
			t.Errorf("%s: %s", way.name, text)
		}
	}
}
