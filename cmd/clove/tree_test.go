package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// Each run is behind its parent, one level deeper, and is there once: also one whose parent is not listed,
// one that is listed twice, and those of a circle.
func TestTreeOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a b:a c:b d:a e": "a 0,b 1,c 2,d 1,e 0",
		"c:b b:a a":       "a 0,b 1,c 2",
		"b:gone c:b":      "b 0,c 1",
		"a a b:a":         "a 0,b 1",
		"a:a b:a":         "a 0,b 1",
		"a:b b:a c:b":     "a 0,b 1,c 2",
		"a:b b:c c:a d":   "d 0,a 0,c 1,b 2",
		"":                "",
	} {
		var ids, parents []agent.ID
		for _, field := range strings.Fields(text) {
			id, parent, _ := strings.Cut(field, ":")
			ids, parents = append(ids, agent.ID(id)), append(parents, agent.ID(parent))
		}
		var got []string
		for _, b := range treeOf(len(ids), func(i int) agent.ID { return ids[i] }, func(i int) agent.ID { return parents[i] }) {
			got = append(got, fmt.Sprint(ids[b.at], " ", b.depth))
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if slices.Sort(got); len(slices.Compact(got)) != len(got) {
			t.Errorf("%q: a run is there twice: %q", text, got)
		}
	}
}
