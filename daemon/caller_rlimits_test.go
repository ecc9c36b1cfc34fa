package daemon

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/rlimits"
)

// The limits read of this process are those that the kernel says, by name; another user's or
// no process has none.
func TestRlimitsOfAProcess(t *testing.T) {
	t.Parallel()
	limits, err := rlimitsOf(os.Getpid(), uint32(os.Geteuid()))
	if err != nil || len(limits) != len(rlimits.Names()) {
		t.Fatalf("%v, %v", limits, err)
	}
	for _, limit := range limits {
		number, _ := rlimits.Resource(limit.Name)
		var want unix.Rlimit
		if err := unix.Getrlimit(number, &want); err != nil {
			t.Fatal(err)
		}
		// Go raises its own soft limit of files, and reports the one before.
		if limit.Hard != want.Max || limit.Soft != want.Cur && limit.Name != "nofile" {
			t.Errorf("%+v, want %+v", limit, want)
		}
	}
	if _, err := rlimitsOf(os.Getpid(), 64001); err == nil {
		t.Error("it is another user's")
	}
	if _, err := rlimitsOf(1<<22+1, 0); err == nil {
		t.Error("there is no such process")
	}
	for _, text := range []string{"", "Limit\n", "Limit                     Soft Limit           Hard Limit           Units     \nMax cpu time              x                    y                    seconds   \n"} {
		if limits, err := parseLimits(text); err == nil {
			t.Errorf("%q: %v", text, limits)
		}
	}
}
