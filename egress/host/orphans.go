package host

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
)

// Orphans are the gates whose starter is gone, by pid. The parent-death signal should have
// killed them; one that survived it is a child of PID 1. A living starter is never PID 1,
// because clove starts itself as a child where it would be. Processes that are meant to outlast
// their starter have other ids (agent.LastingID).
func Orphans() []int {
	var orphans []int
	entries, _ := os.ReadDir("/proc") // without proc no process can be looked at
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		status, err := pidfd.Status(pid)
		if err != nil || strings.HasPrefix(status["State"], "Z") {
			continue // it has ended
		}
		if isGateID(status["Uid"]) && status["PPid"] == "1" {
			orphans = append(orphans, pid)
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
	return err == nil && id >= first && id < first+agent.IDsPerAgent/2
}

// KillOrphan kills one of Orphans. It does nothing where the pid is another
// process's by now.
func KillOrphan(pid int) error {
	process, err := pidfd.Open(pid)
	if pidfd.Gone(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer process.Close()
	if status, err := pidfd.Status(pid); err != nil || !isGateID(status["Uid"]) {
		return nil
	}
	return process.Signal(unix.SIGKILL)
}
