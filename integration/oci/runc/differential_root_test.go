//go:build root

package runc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/internal/testhost"
)

// setting reads a number from the environment, for longer or repeated runs.
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
	return setting(t, "CLOVE_BUNDLES", testhost.Sample(2*len(changes()), 60, 60))
}

// both has clove-oci and runc do the same at the same time, each in a folder of its own, and
// returns their histories.
func both(t *testing.T, dir, name string, live func(s *site) []string) (ours, theirs []string) {
	t.Helper()
	return beside(t, []runtime{tested(t), peer(t)}, dir, name, live)
}

func beside(t *testing.T, runtimes []runtime, dir, name string, live func(s *site) []string) (ours, theirs []string) {
	t.Helper()
	histories := make([][]string, 2)
	var running sync.WaitGroup
	for i, r := range runtimes {
		side := fmt.Sprintf("%c%s", 'a'+i, name)
		running.Go(func() { histories[i] = live(newSite(t, r, filepath.Join(dir, side), "beside-"+side)) })
	}
	running.Wait()
	return histories[0], histories[1]
}

// quiet begins a test of both, and checks that the host is unchanged at the end.
func quiet(t *testing.T) (dir string) {
	t.Helper()
	testhost.Root(t)
	testhost.NoResidue(t)
	t.Cleanup(func() {
		removeParents()
		if left := append(cgroups(cgroupParent), cgroups("beside-*")...); len(left) > 0 {
			t.Errorf("cgroups are left: %v", left)
		}
	})
	dir = t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // users in containers search for their root from here
		t.Fatal(err)
	}
	return dir
}

// TestADifferenceIsSeen is the control of the other tests: it compares an old runc with
// today's, whose masks, for one, are mounts of another kind.
func TestADifferenceIsSeen(t *testing.T) {
	ours, theirs := beside(t, []runtime{vulnerable(t, until2023), peer(t)}, quiet(t), "", func(s *site) []string {
		return s.live(generate(s, 1, 0).flags...)
	})
	rest := unexplained(differ(ours, theirs))
	if !slices.ContainsFunc(rest, func(line string) bool { return strings.Contains(line, "/proc/self/mountinfo") }) {
		t.Errorf("nothing of it is seen: %q", rest)
	}
}

// TestBundlesAreTheSameToBoth is the differential test: both accept or refuse with the same
// words, and have the same states, the same environment inside, and the same leftovers.
func TestBundlesAreTheSameToBoth(t *testing.T) {
	dir, seed, count := quiet(t), setting(t, "CLOVE_SEED", 1), bundles(t)
	first := 0
	if only := setting(t, "CLOVE_BUNDLE", -1); only >= 0 {
		first, count = only, only+1
	}
	t.Logf("seed %d, bundles %d to %d of %d changes", seed, first, count-1, len(changes()))
	started := 0
	for number := first; number < count; number++ {
		ours, theirs := both(t, dir, fmt.Sprint(number), func(s *site) []string {
			return s.live(generate(s, seed, number).flags...)
		})
		if strings.Contains(strings.Join(ours, "\n"), "\nworld: ") {
			started++
		}
		if rest := unexplained(differ(ours, theirs)); len(rest) > 0 {
			t.Errorf("run again with CLOVE_SEED=%d CLOVE_BUNDLE=%d (%s)\n%s", seed, number, names(seed, number), strings.Join(rest, "\n"))
		}
		if count-first == 1 {
			t.Logf("%s\n%s", names(seed, number), strings.Join(ours, "\n"))
		}
	}
	// The generator must make neither only invalid bundles nor only valid ones.
	if tried := count - first; tried >= len(changes()) && (started < tried/4 || started > tried*9/10) {
		t.Errorf("%d of %d bundles came to life", started, tried)
	}
	t.Logf("%d of them came to life", started)
}
