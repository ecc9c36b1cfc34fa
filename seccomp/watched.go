package seccomp

import (
	"slices"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Beyond lists what to watch of a program under profile to learn which groups it needs beyond
// minimal. A call that is made very often, and only behind another one of its group, is left
// out: a program that waits for events has made a descriptor for them.
func Beyond(profile *specs.LinuxSeccomp) ([]Watch, error) {
	minimal, err := Profile(Minimal)
	if err != nil {
		return nil, err
	}
	var watched []Watch
	for _, call := range calls() {
		if slices.Contains(followers, call) || verdictOf(profile, call) == Refused ||
			verdictOf(minimal, call) == Allowed || Narrower(minimal, profile, call) {
			continue
		}
		w := Watch{Call: call}
		if some, selected := watchedBits[call]; selected {
			w = some
		}
		watched = append(watched, w)
	}
	return watched, nil
}

// followers need a descriptor, a timer or a child that another call of their group made.
var followers = []string{
	"epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
	"bind", "connect", "listen", "accept", "accept4", "getsockname", "getpeername", "getsockopt", "setsockopt",
	"sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "shutdown",
	"timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete", "timerfd_settime", "timerfd_gettime",
	"inotify_add_watch", "inotify_rm_watch",
}

// watchedBits select, of calls that minimal allows with some arguments, those that it may
// refuse: a new process has a signal for its end, and a thread has none; the commands of
// fcntl(2) below 8 are minimal's.
var watchedBits = map[string]Watch{
	"clone": {Call: "clone", Argument: 0, Bits: 0xff | unix.CLONE_VFORK | newNamespaces},
	"fcntl": {Call: "fcntl", Argument: 1, Bits: 0x418},
}

// Significant keeps the arguments that a condition of a built-in profile looks at, and clears
// the others: two calls that are the same then are the same to every profile.
func Significant(call string, args [6]uint64) (kept [6]uint64) {
	for _, index := range conditionArguments()[call] {
		kept[index] = args[index]
	}
	return kept
}

var conditionArguments = sync.OnceValue(func() map[string][]uint {
	table := map[string][]uint{}
	for _, b := range builtins() {
		for _, c := range b.withoutSetID().conditions {
			for _, args := range slices.Concat(c.accept, c.absent) {
				for _, arg := range args {
					if !slices.Contains(table[c.name], arg.Index) {
						table[c.name] = append(table[c.name], arg.Index)
					}
				}
			}
		}
	}
	return table
})
