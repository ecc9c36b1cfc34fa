package daemon

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/internal/rlimits"
)

// rlimitsFor returns the caller's own resource limits where the run has commands for the host:
// they run with these, not with cloved's. Root's caller may be in another pid namespace, and
// has cloved's.
func (c caller) rlimitsFor(spec agent.Spec) ([]agent.Rlimit, error) {
	if !spec.Kernel.HasCommands() {
		return nil, nil
	}
	limits, err := rlimitsOf(c.pid, c.owner.UID)
	if err != nil && !c.root() {
		return nil, api.Failure(api.CodeDenied, "connect from a process that lives until the run is accepted, or name a URL instead",
			"a command of --on-warn or --on-end has its caller's resource limits, and those cannot be read: %v", err).By("", api.RuleUser+"rlimits")
	}
	return limits, nil
}

// rlimitsOf reads the limits of a process of the user's. A number that belongs to another
// process by now is refused: the process that is opened first must be the user's, and live to
// the end.
func rlimitsOf(pid int, uid uint32) ([]agent.Rlimit, error) {
	process, err := pidfd.Open(pid)
	if err != nil {
		return nil, err
	}
	defer process.Close()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	// Real, effective, saved and file system's, proc_pid_status(5).
	if !strings.Contains(string(status), fmt.Sprintf("\nUid:\t%d\t%d\t%d\t%d\n", uid, uid, uid, uid)) {
		return nil, fmt.Errorf("process %d is not user %d's", pid, uid)
	}
	// prlimit(2) would need CAP_SYS_RESOURCE.
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return nil, err
	}
	limits, err := parseLimits(string(text))
	if err != nil {
		return nil, err
	}
	if process.Ended() {
		return nil, fmt.Errorf("process %d has ended", pid)
	}
	return limits, nil
}

// limitName is the width of the first column of /proc/PID/limits.
const limitName = 26

// parseLimits reads proc_pid_limits(5): below a heading, one line for each resource in the
// order of the kernel's numbers, with the soft and the hard limit behind its name.
func parseLimits(text string) (limits []agent.Rlimit, err error) {
	lines := strings.Split(text, "\n")
	for _, name := range rlimits.Names() {
		number, _ := rlimits.Resource(name)
		if number+1 >= len(lines) || len(lines[number+1]) < limitName {
			return nil, fmt.Errorf("the limit %s is missing", name)
		}
		columns := strings.Fields(lines[number+1][limitName:])
		if len(columns) < 2 {
			return nil, fmt.Errorf("the limit %s has no value", name)
		}
		limit := agent.Rlimit{Name: name, Soft: agent.RlimitInfinity, Hard: agent.RlimitInfinity}
		for i, value := range []*uint64{&limit.Soft, &limit.Hard} {
			if columns[i] == "unlimited" {
				continue
			}
			if *value, err = strconv.ParseUint(columns[i], 10, 64); err != nil {
				return nil, fmt.Errorf("the limit %s: %w", name, err)
			}
		}
		limits = append(limits, limit)
	}
	return limits, nil
}
