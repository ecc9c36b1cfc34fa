package rlimits

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEachNameHasTheKernelsNumber(t *testing.T) {
	t.Parallel()
	want := map[string]int{"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
		"fsize": unix.RLIMIT_FSIZE, "locks": unix.RLIMIT_LOCKS, "memlock": unix.RLIMIT_MEMLOCK, "msgqueue": unix.RLIMIT_MSGQUEUE,
		"nice": unix.RLIMIT_NICE, "nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "rss": unix.RLIMIT_RSS,
		"rtprio": unix.RLIMIT_RTPRIO, "rttime": unix.RLIMIT_RTTIME, "sigpending": unix.RLIMIT_SIGPENDING, "stack": unix.RLIMIT_STACK}
	if got := Names(); len(got) != len(want) || !slices.IsSorted(got) {
		t.Errorf("names %v", got)
	}
	for _, name := range Names() {
		number, known := Resource(name)
		again, knownAgain := OCIResource(OCIName(name))
		if !known || !knownAgain || number != want[name] || again != number {
			t.Errorf("%s is %d, %d as %s, want %d", name, number, again, OCIName(name), want[name])
		}
	}
	for _, word := range []string{"", "RLIMIT_CPU", "CPU"} {
		if number, known := Resource(word); known {
			t.Errorf("%q is %d", word, number)
		}
	}
	for _, word := range []string{"", "cpu", "rlimit_cpu", "RLIMIT_cpu", "RLIMIT_NOFILES"} {
		if number, known := OCIResource(word); known {
			t.Errorf("%q is %d", word, number)
		}
	}
}
