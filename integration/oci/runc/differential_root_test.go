//go:build root

package runc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/internal/testhost"
)

// setting is a number from the environment, for longer or repeated runs.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

// bundles is how many are tried: the first ones have one change each.
func bundles(t *testing.T) int {
	if testhost.Lane() == testhost.LaneVM {
		return setting(t, "CLOVE_BUNDLES", 60)
	}
	return setting(t, "CLOVE_BUNDLES", 2*len(changes()))
}

// TestBundlesAreTheSameToBoth is the differential test: accepted or refused with the same
// words, the same states, the same world inside, the same left behind.
func TestBundlesAreTheSameToBoth(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	t.Cleanup(func() {
		removeParents()
		if left := cgroups(cgroupParent); len(left) > 0 {
			t.Errorf("cgroups are left: %v", left)
		}
	})
	runtimes := []runtime{tested(t), peer(t)}
	seed, count := setting(t, "CLOVE_SEED", 1), bundles(t)
	only := setting(t, "CLOVE_BUNDLE", -1)
	t.Logf("seed %d, %d bundles of %d changes", seed, count, len(changes()))
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // container's users look for their root from here
		t.Fatal(err)
	}
	started := 0
	for number := range count {
		if only >= 0 && number != only {
			continue
		}
		histories := make([][]string, len(runtimes))
		var names []string
		var both sync.WaitGroup
		for i, r := range runtimes {
			both.Go(func() {
				s := newSite(t, r, filepath.Join(dir, fmt.Sprintf("%c%d", 'a'+i, number)), fmt.Sprintf("differ-%c%d", 'a'+i, number))
				made, b := generate(s, seed, number)
				if i == 0 {
					names = made
				}
				histories[i] = s.live(b.flags...)
			})
		}
		both.Wait()
		if strings.Contains(strings.Join(histories[0], "\n"), "\nworld: ") {
			started++
		}
		if rest := unexplained(differ(histories[0], histories[1])); len(rest) > 0 {
			t.Errorf("bundle %d of seed %d (%s): run again with CLOVE_SEED=%d CLOVE_BUNDLE=%d\n%s",
				number, seed, strings.Join(names, ", "), seed, number, strings.Join(rest, "\n"))
		}
		if only >= 0 {
			t.Logf("%s\n%s", strings.Join(names, ", "), strings.Join(histories[0], "\n"))
		}
	}
	if t.Failed() || only >= 0 {
		return
	}
	// Neither a generator that makes nothing that works, nor one that makes nothing wrong.
	if started < count/4 || started > count*9/10 {
		t.Errorf("%d of %d bundles came to life", started, count)
	}
	t.Logf("%d of %d bundles came to life", started, count)
}
