package runtime

import (
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// clocks are the two that a time namespace can shift, time_namespaces(7).
type clocks struct{ monotonic, boot time.Duration }

// hostClocks reads them as late as possible: what the launch still takes is what the agent
// finds on them beside the start that was asked for.
func hostClocks() clocks {
	var monotonic, boot unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic) // fails only for an unknown clock
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	return clocks{time.Duration(monotonic.Nano()), time.Duration(boot.Nano())}
}

// offsets make both clocks begin at start.
func (c clocks) offsets(start time.Duration) map[string]specs.LinuxTimeOffset {
	return map[string]specs.LinuxTimeOffset{"monotonic": timeOffset(start - c.monotonic), "boottime": timeOffset(c.ahead(start))}
}

// ahead is how far CLOCK_BOOTTIME inside is before the host's.
func (c clocks) ahead(start time.Duration) time.Duration {
	if start == 0 {
		return 0
	}
	return start - c.boot
}

// timeOffset rounds towards the past, as the kernel's nanoseconds have no sign.
func timeOffset(d time.Duration) specs.LinuxTimeOffset {
	seconds := d / time.Second
	if d < 0 && d%time.Second != 0 {
		seconds--
	}
	return specs.LinuxTimeOffset{Secs: int64(seconds), Nanosecs: uint32(d - seconds*time.Second)}
}
