package runtime

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
)

// orphanGates are processes with the id of a gate whose supervisor died and
// which, against all of their walls, did not: they are PID 1's then. No living
// supervisor is PID 1; clove starts itself once more where it would be.
func orphanGates() []Problem {
	var orphans []Problem
	for _, name := range names("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		status, err := processStatus(pid)
		if err != nil || strings.HasPrefix(status["State"], "Z") {
			continue // it has ended
		}
		if isGateID(status["Uid"]) && status["PPid"] == "1" {
			orphans = append(orphans, Problem{ProblemGate, name, "the clove that owned this process with the id of a gate is gone"})
		}
	}
	return orphans
}

// isGateID reads the Uid line of proc_pid_status(5): the real id comes first.
func isGateID(line string) bool {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return false
	}
	id, err := strconv.ParseUint(fields[0], 10, 32)
	first := uint64(agent.Lease{}.GateID())
	return err == nil && id >= first && id < first+agent.IDsPerAgent
}

// sweepGate kills an orphan, if its number still means it.
func sweepGate(name string) error {
	pid, err := strconv.Atoi(name)
	if err != nil {
		return err
	}
	process, err := pidfd.Open(pid)
	if pidfd.Gone(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer process.Close()
	if status, err := processStatus(pid); err != nil || !isGateID(status["Uid"]) {
		return nil
	}
	return process.Signal(unix.SIGKILL)
}
