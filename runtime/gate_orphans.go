package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// orphanGates are processes with the id of a gate whose parent is no clove: its
// supervisor died and, against all of its walls, it did not.
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
		parent, _ := strconv.Atoi(status["PPid"])
		if isGateID(status["Uid"]) && !isClove(parent) {
			orphans = append(orphans, Problem{ProblemGate, name, "no clove owns this process with the id of a gate"})
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
	return err == nil && id >= first && id < first+agent.IDRanges
}

// isClove tells by its executable, this one's or one of its name.
func isClove(pid int) bool {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	self, _ := os.Executable()
	return err == nil && (path == self || strings.HasPrefix(filepath.Base(path), "clove"))
}

// sweepGate kills an orphan, if its number still means it.
func sweepGate(name string) error {
	pid, err := strconv.Atoi(name)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	} else if err != nil {
		return err
	}
	defer unix.Close(fd)
	if status, err := processStatus(pid); err != nil || !isGateID(status["Uid"]) {
		return nil
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}
