package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// Names of limits that code asks for.
const (
	Memory       = "memory"
	MemorySwap   = "memory-swap"
	CPUs         = "cpus"
	CPUSet       = "cpuset-cpus"
	Pids         = "pids-limit"
	Ulimit       = "ulimit"
	CPUTime      = "cpu-time"
	Timeout      = "timeout"
	StopTimeout  = "stop-timeout"
	StopSignal   = "stop-signal"
	StartTimeout = "start-timeout"
	Output       = "output-limit"
	Disk         = "disk"
	ShmSize      = "shm-size"
)

// Limits are those of all processes together. Memory comes before swap, which is compared with
// it.
var Limits = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{
		amount[int64]{unit: bytes, at: func(s *agent.Spec) *int64 { return &s.Limits.MemoryBytes }, read: readMemory}.row(Setting{
			Flag: Memory, Short: "m", Key: "limits.memory", Group: GroupLimits,
			Usage: "memory of the whole agent, caches included",
			Doc:   "size, caches included: 512M",
			Drops: func(string) []string { return []string{MemorySwap} }, // swap follows memory
			Live:  &Live{Usage: "memory of the whole agent", Read: changeMemory},
			Learn: &Learn{Seen: used(func(p agent.ObservedPeaks) int64 { return p.MemoryBytes }, 64*mebibyte), Round: roundSize, Unit: inBytes},
		}),
		{
			Flag: MemorySwap, Key: "limits.memory_swap", Form: Amount, Group: GroupLimits,
			Usage: "memory and swap together; -1: any amount of swap", Default: "as --memory: no swap",
			Doc:  "size of memory and swap together; -1: any amount of swap; as memory, no swap, if it is absent",
			Read: one(readSwap), Write: writeSwap, Wider: widerSwap,
			Live: &Live{Usage: "memory and swap together; -1: any amount of swap", Default: "the swap that it had", Read: changeSwap},
		},
		amount[float64]{unit: shares, at: func(s *agent.Spec) *float64 { return &s.Limits.CPUs }, read: readCPUs, unlimited: true}.row(Setting{
			Flag: CPUs, Key: "limits.cpus", Group: GroupLimits, Usage: "CPU seconds per second, for example 0.5", Default: "all",
			Doc:  "CPU seconds per second: 0.5",
			Live: &Live{Usage: "CPU seconds per second", Read: changeCPUs},
		}),
		{
			Flag: CPUSet, Key: "limits.cpuset", Group: GroupLimits, Usage: "the CPUs that it may run on, for example 0-2,4", Default: "all",
			Pod:  "for CPUs of its own give a whole number of --cpus on nodes whose kubelet has the static CPU manager policy",
			Doc:  "the CPUs that it may run on: 0-2,4",
			Read: one(readCPUSet), Write: func(s agent.Spec) []string { return texts(s.Limits.CPUSet) }, Wider: widerCPUSet,
		},
		amount[int64]{unit: counts, at: func(s *agent.Spec) *int64 { return &s.Limits.Pids }, read: readPids}.row(Setting{
			Flag: Pids, Key: "limits.pids", Group: GroupLimits, Usage: "processes and threads at once",
			Live:  &Live{Usage: "processes and threads at once", Read: changePids},
			Learn: &Learn{Seen: used(func(p agent.ObservedPeaks) int64 { return p.Pids }, agent.PidsFloor), Round: upTo(4), Unit: inCounts},
		}),
		amount[time.Duration]{unit: clocks, at: func(s *agent.Spec) *time.Duration { return &s.Limits.CPUTime }, read: someClock, unlimited: true}.row(Setting{
			Flag: CPUTime, Key: "limits.cpu_time", Group: GroupLimits, Usage: "CPU time of all its processes together",
			Pod:   "use --timeout",
			Doc:   "CPU time of all processes together: 90s",
			Learn: &Learn{Seen: used(func(p agent.ObservedPeaks) int64 { return p.CPUMS }, 10_000), Round: upTo(1000), Unit: inMillis},
		}),
		amount[time.Duration]{unit: clocks, at: func(s *agent.Spec) *time.Duration { return &s.Limits.WallClock }, read: someClock, unlimited: true}.row(Setting{
			Flag: Timeout, Key: "limits.timeout", Group: GroupLimits, Usage: "wall clock time, on a clock that sleep does not stop",
			Doc:   "wall clock time: 10m",
			Live:  &Live{Usage: "wall clock time, counted from its start; 0: no limit", Read: changeTimeout},
			Learn: &Learn{Seen: used(func(p agent.ObservedPeaks) int64 { return p.WallMS }, 60_000), Round: upTo(1000), Unit: inMillis},
		}),
		// 0 is a value: KILL at once.
		amount[time.Duration]{unit: clocks, at: func(s *agent.Spec) *time.Duration { return &s.Limits.StopGrace }, read: clock}.row(Setting{
			Flag: StopTimeout, Key: "limits.stop_timeout", Group: GroupLimits, Usage: "time between the signal that asks it to end and KILL",
			Doc:   "time between the request to end and KILL",
			Write: writeGrace,
		}),
		{
			Flag: StopSignal, Manifest: "limits.stop_signal", Group: GroupLimits, Usage: "signal that asks it to end", Default: "TERM",
			Pod:  "name it in the image with STOPSIGNAL",
			Read: one(readStopSignal),
		},
		amount[time.Duration]{unit: clocks, at: func(s *agent.Spec) *time.Duration { return &s.StartTimeout }, read: readStartTimeout}.row(Setting{
			Flag: StartTimeout, Manifest: "limits.start_timeout", Group: GroupLimits, Usage: "longest time that a step of the start may take without progress", Default: agent.Spec{}.StartBound().String(),
			Pod: "the kubelet waits for the runtime: runtimeRequestTimeout in its configuration",
		}),
		amount[int64]{unit: bytes, at: func(s *agent.Spec) *int64 { return &s.Limits.OutputBytes }, read: sizeFrom(1), unlimited: true}.row(Setting{
			Flag: Output, Key: "limits.output", Group: GroupLimits, Usage: "bytes of stdout and stderr together",
			Pod:   "the kubelet rotates logs: containerLogMaxSize in its configuration",
			Doc:   "size of stdout and stderr together",
			Learn: &Learn{Seen: func(o agent.Observed) (int64, int64) { return o.Peaks.OutputBytes, mebibyte }, Round: roundSize, Unit: inBytes},
		}),
		amount[int64]{unit: bytes, at: func(s *agent.Spec) *int64 { return &s.Limits.DiskBytes }, read: sizeFrom(agent.DiskFloorBytes)}.row(Setting{
			Flag: Disk, Key: "limits.disk", Group: GroupLimits, Usage: "size of the writable layer",
			Learn: &Learn{Seen: func(o agent.Observed) (int64, int64) { return o.Peaks.DiskBytes, 64 * mebibyte }, Round: roundSize, Unit: inBytes},
		}),
		amount[int64]{unit: bytes, at: func(s *agent.Spec) *int64 { return &s.Limits.ShmBytes }, read: sizeFrom(agent.SizeFloor)}.row(Setting{
			Flag: ShmSize, Key: "limits.shm", Group: GroupLimits, Usage: "size of /dev/shm",
			Learn: &Learn{Seen: shmPeak, Round: roundSize, Unit: inBytes},
		}),
	}}
})

// readMemory also sets swap, which is off unless it is asked for: docker would give as much
// swap as memory.
func readMemory(r *Reader, flag, text string) (int64, error) {
	n, err := ParseSize(flag, text, agent.MemoryFloorBytes)
	r.Spec.Limits.MemorySwapBytes = n
	return n, err
}

// readSwap follows docker: the value counts memory and swap together.
func readSwap(r *Reader, text string) (err error) {
	limits := &r.Spec.Limits
	if text == "-1" {
		limits.MemorySwapBytes = -1
		return nil
	}
	limits.MemorySwapBytes, err = ParseSize(MemorySwap, text, 0)
	if err == nil && limits.MemorySwapBytes < limits.MemoryBytes {
		return Invalid(MemorySwap, "it counts memory and swap together: at least "+bytes.say(limits.MemoryBytes),
			"%s is less than the memory limit", text)
	}
	return err
}

func writeSwap(s agent.Spec) []string {
	switch l := s.Limits; {
	case l.MemorySwapBytes < 0:
		return []string{"-1"}
	case l.MemorySwapBytes > l.MemoryBytes:
		return []string{writeSize(l.MemorySwapBytes)}
	}
	return nil
}

// widerSwap compares swap by itself: memory and swap together follow memory.
func widerSwap(base, wide agent.Spec) []Difference {
	say := func(swap int64) string {
		if swap < 0 {
			return "no limit"
		}
		return bytes.say(swap)
	}
	b, w := swap(base.Limits), swap(wide.Limits)
	return more(b >= 0 && (w < 0 || w > b), say(b), say(w))
}

// swap is how much swap there may be beyond memory; -1: any amount.
func swap(l agent.Limits) int64 {
	if l.MemorySwapBytes < 0 {
		return -1
	}
	return max(0, l.MemorySwapBytes-l.MemoryBytes)
}

// readPids always sets a limit: without one, a fork bomb takes the host's process numbers.
func readPids(_ *Reader, flag, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, Invalid(flag, "write a whole number such as 512", "%q is not a number of processes", text)
	case n <= 0:
		return 0, Invalid(flag, "there is always a limit; write a large number", "%d is not a limit", n)
	case n < agent.PidsFloor:
		return 0, Invalid(flag, "give at least "+strconv.Itoa(agent.PidsFloor), "%d is too few: the sandbox itself needs some to start", n)
	case n > agent.PidsCeiling:
		return 0, Invalid(flag, "the kernel knows at most "+strconv.Itoa(agent.PidsCeiling), "%d is too many", n)
	}
	return n, nil
}

func writeGrace(s agent.Spec) []string {
	if s.Limits.StopGrace == 0 {
		return []string{"0"}
	}
	return []string{writeClock(s.Limits.StopGrace)}
}

// readStopSignal refuses KILL and STOP: no program can end by itself on them. To end it at
// once there is StopTimeout.
func readStopSignal(r *Reader, text string) error {
	number, err := ParseSignal(StopSignal, text)
	if err == nil && (number == unix.SIGKILL || number == unix.SIGSTOP) {
		err = Invalid(StopSignal, "to end it at once write --stop-timeout 0", "no program can catch %s", text)
	}
	r.Spec.Limits.StopSignal = int(number)
	return err
}

// readStartTimeout has a ceiling, because a start that makes no progress keeps one of cloved's
// start slots.
func readStartTimeout(_ *Reader, flag, text string) (time.Duration, error) {
	d, err := ParseClock(flag, text)
	if err == nil && (d < agent.StartTimeoutFloor || d > agent.StartTimeoutCeiling) {
		err = Invalid(flag, fmt.Sprintf("give a time from %s to %s, or omit the flag", agent.StartTimeoutFloor, agent.StartTimeoutCeiling),
			"%q is not a valid time limit for a step of the start", text)
	}
	return d, err
}

const shmDir = "/dev/shm"

// shmPeak leaves a margin for files that were removed before they were measured.
func shmPeak(o agent.Observed) (peak, floor int64) {
	if slices.ContainsFunc(o.Written, func(file string) bool { return file == shmDir || strings.HasPrefix(file, shmDir+"/") }) {
		return max(o.Peaks.ShmBytes, 16*mebibyte), mebibyte
	}
	return o.Peaks.ShmBytes, mebibyte
}
