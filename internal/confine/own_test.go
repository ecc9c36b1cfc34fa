package confine

import (
	"os"
	"testing"
)

// Root never gets the weaker form, and another user no other one: neither has what root's takes away.
func TestOwnIsForOtherUsers(t *testing.T) {
	t.Parallel()
	p, err := parse([]string{Own})
	if root := os.Getuid() == 0; (err != nil) != root || !root && p != (process{}) {
		t.Errorf("%+v, %v as user %d", p, err, os.Getuid())
	}
	for _, arguments := range [][]string{{Own, "4"}, {"own "}, {""}, {}} {
		if p, err := parse(arguments); err == nil {
			t.Errorf("%q: %+v", arguments, p)
		}
	}
	kept := map[string]bool{}
	for _, m := range measures {
		kept[m.name] = !m.root
	}
	for _, name := range []string{"descriptors", "rlimits", "capabilities", "dumpable", "parent-death signal", "no_new_privs", "filter", "probe"} {
		if !kept[name] {
			t.Errorf("a process of its own user is without %s", name)
		}
	}
}
