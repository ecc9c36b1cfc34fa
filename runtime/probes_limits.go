package runtime

import (
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/rlimits"
)

func findLayout(h *probes) (found, missing string) {
	if h.cgroupsErr != nil {
		return "", h.cgroupsErr.Error()
	}
	return string(h.cgroups.Mode()), ""
}

// generation is how a record names the mechanism of a controller: "cgroup2" or "cgroup1".
func generation(h *cgroups.Host) string {
	if h.Mode() == cgroups.ModeV2 {
		return "cgroup2"
	}
	return "cgroup1"
}

func controllerProbe(name string) func(*probes) (string, string) {
	return func(h *probes) (found, missing string) {
		if h.cgroupsErr != nil {
			return "", h.cgroupsErr.Error()
		}
		if !h.cgroups.Has(name) {
			return "", h.cgroups.Missing(name)
		}
		return generation(h.cgroups), ""
	}
}

// findAccounting: v2 counts CPU time in every cgroup, v1 in its own hierarchy.
func findAccounting(h *probes) (found, missing string) {
	if h.cgroupsErr == nil && h.cgroups.Mode() == cgroups.ModeV2 {
		return generation(h.cgroups), ""
	}
	return controllerProbe("cpuacct")(h)
}

// findDevices: v2 has no controller, its rules are programs (bpf(2)).
func findDevices(h *probes) (found, missing string) {
	if h.cgroupsErr == nil && h.cgroups.Mode() == cgroups.ModeV2 {
		return "cgroup2-bpf", ""
	}
	return controllerProbe("devices")(h)
}

// findSwap: a host that has no swap enforces "no swap" by itself.
func findSwap(h *probes) (found, missing string) {
	if h.cgroupsErr != nil {
		return "", h.cgroupsErr.Error()
	}
	if h.cgroups.SwapAccounting() {
		return generation(h.cgroups), ""
	}
	swaps, err := os.ReadFile("/proc/swaps")
	if err == nil && strings.Count(strings.TrimSpace(string(swaps)), "\n") == 0 {
		return "no-swap-host", ""
	}
	return "", "the kernel does not count swap"
}

// findSocketBuffers: netlink queues are in no cgroup, so a watch holds them. See sockets.go.
func findSocketBuffers(h *probes) (found, missing string) {
	if found, missing = controllerProbe("memory")(h); missing != "" {
		return "", missing
	}
	if !h.cgroups.CountsSockets() {
		return "", "the kernel does not count socket buffers"
	}
	return found + ",watch", ""
}

func findRlimits(*probes) (found, missing string) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return "", err.Error()
	}
	return fmt.Sprintf("hard nofile %d", files.Max), ""
}

// hardLimit implements prober.
func (h *probes) hardLimit(name string) (limit uint64, raisable bool) {
	var own unix.Rlimit
	number, known := rlimits.Resource(name)
	if !known || unix.Getrlimit(number, &own) != nil {
		return 0, false
	}
	return own.Max, hasCapability(unix.CAP_SYS_RESOURCE)
}

// attainable lowers each limit to what this process may give, for a run that
// agreed to do without the rest.
func attainable(asked []agent.Rlimit, h prober) []agent.Rlimit {
	limits := slices.Clone(asked)
	for i, r := range limits {
		if limit, raisable := h.hardLimit(r.Name); !raisable {
			limits[i].Soft, limits[i].Hard = min(r.Soft, limit), min(r.Hard, limit)
		}
	}
	return limits
}

// raised returns the limits whose hard value is above clove's own: they are
// raised from outside, before the sandbox loses the privilege to do so.
func raised(asked []agent.Rlimit, h prober) []agent.Rlimit {
	var above []agent.Rlimit
	for _, r := range asked {
		if limit, _ := h.hardLimit(r.Name); r.Hard > limit {
			above = append(above, r)
		}
	}
	return above
}

// onlineCPUs is how many CPUs this process may run on.
func onlineCPUs() int { return goruntime.NumCPU() }
