package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/callout"
)

// newCaller makes the callouts of a run of the test's own user, and returns what failed.
func newCaller(t *testing.T, onWarn, onEnd string) (*callouts, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var failed []string
	spec, streams := testSpec(), IO{Owner: agent.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}
	spec.Kernel = agent.Kernel{OnWarn: onWarn, OnEnd: onEnd, Namespace: "acme"}
	streams.CalloutFailed = func(flag string, err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, flag+": "+err.Error())
	}
	c := newCallouts(spec, streams, func() (commandPlace, error) { return nowhere{}, nil }, func() bool { return false })
	return c, func() []string { c.finish(outcome{}); mu.Lock(); defer mu.Unlock(); return failed }
}

// nowhere is the place of a command without a cgroup: tests of units have no privilege.
type nowhere struct{}

func (nowhere) Dirs() []string            { return nil }
func (nowhere) End(context.Context) error { return nil }

// The test binary becomes the commands.
func init() {
	if len(os.Args) > 1 && os.Args[1] == callout.Argument {
		callout.Main(os.Args[2:])
	}
}

// tokensOf is a budget of a run.
func tokensOf(granted, used int64) api.Budget {
	return api.Budget{Account: "1000/run:1111111111111111", Dimension: "tokens", Granted: &granted, Used: used, AtEnd: "pause"}
}

// Each mark calls its own command, which gets the event; a mark without one calls nothing.
func TestEachMarkHasItsCallout(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "called")
	command := func(label string) string {
		return "{ echo " + label + ` $CLOVE_EVENT $CLOVE_NAMESPACE $CLOVE_DIMENSION $CLOVE_USED of $CLOVE_GRANTED $CLOVE_AT_END; cat; echo; } >>` + file
	}
	for _, row := range []struct {
		onWarn, onEnd, want string
	}{
		{command("warn"), command("end"), "warn budget-warning acme tokens 8 of 10 pause|end budget-end acme tokens 11 of 10 pause"},
		{command("warn"), "", "warn budget-warning acme tokens 8 of 10 pause"},
		{"", command("end"), "end budget-end acme tokens 11 of 10 pause"},
		{"", "", ""},
	} {
		os.Remove(file)
		c, failed := newCaller(t, row.onWarn, row.onEnd)
		c.warned(tokensOf(10, 8))
		c.spent([]api.Budget{tokensOf(10, 11)})
		if all := failed(); len(all) > 0 {
			t.Errorf("%q", all)
		}
		text, _ := os.ReadFile(file) // absent: nothing was called
		var lines []string
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "{") {
				lines = append(lines, line)
			} else if !strings.Contains(line, `"id":"`+string(c.spec.ID)+`"`) || !strings.Contains(line, `"budget":{"account":"1000/run:1111111111111111"`) {
				t.Errorf("%s", line)
			}
		}
		slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) }) // they begin in any order
		if got := strings.Join(lines, "|"); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

// An end is reported once, however often the run's standing is, and again after a raise or
// in a new period.
func TestAnEndIsReportedOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "called")
	c, failed := newCaller(t, "", "echo x >>"+file)
	later := tokensOf(20, 21)
	later.Since = time.Unix(1_800_000_000, 0)
	for _, all := range [][]api.Budget{{tokensOf(10, 11)}, {tokensOf(10, 12)}, {tokensOf(10, 12)}, {tokensOf(20, 21)}, {}, {tokensOf(20, 21)}, {later}} {
		c.spent(all)
	}
	if all := failed(); len(all) > 0 {
		t.Errorf("%q", all)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "x") != 4 {
		t.Errorf("%v: %s", err, text)
	}
}

// A failure is reported under its flag, and too many at once are left out.
func TestCalloutsThatFail(t *testing.T) {
	t.Parallel()
	held, err := os.Create(filepath.Join(t.TempDir(), "held"))
	if err == nil {
		err = unix.Flock(int(held.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	// They wait for the lock, and use no processor time meanwhile.
	c, failed := newCaller(t, "flock --shared "+held.Name()+" true; echo wrong >&2; exit 3", "")
	for range calloutsMost + 3 {
		c.warned(tokensOf(10, 8))
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, text := range failed() {
		counts[text]++
	}
	want := map[string]int{"--on-warn: exit status 3: wrong": calloutsMost, "--on-warn: " + errCalloutsMost.Error(): 3}
	if fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("%v", counts)
	}
}
