package runtime

import (
	"fmt"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// CheckExecSize refuses a command and an environment that execve(2) would refuse inside without
// saying which text is too long. A run without a limit of its stack inherits that of the process
// that starts it: this one, or a supervisor, which has cloved's.
func CheckExecSize(command, env []string, limits agent.Limits) error {
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		return agent.Failed("getrlimit", err)
	}
	return agent.CheckExecSize(command, env, limits.StackBytes(stack.Cur))
}

// CheckAmounts refuses memory and disk beyond what this host has at all: such a limit would hold nothing. What a run
// has without asking is never refused. The limits of OCI containers are their engine's.
func (p Paths) CheckAmounts(asked agent.Limits) error {
	var memory unix.Sysinfo_t
	if err := unix.Sysinfo(&memory); err != nil {
		return agent.Failed("sysinfo", err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(p.State, &disk); err != nil {
		return &agent.Error{Step: "directories", Message: "cannot measure " + p.State, Err: err}
	}
	for _, amount := range []struct {
		flag, where        string
		asked, have, usual int64
	}{
		{"--memory", "this host has", asked.MemoryBytes, int64(memory.Totalram) * int64(memory.Unit), agent.UsualMemoryBytes},
		{"--disk", "the file system of " + p.State + " has", asked.DiskBytes, int64(disk.Blocks) * disk.Bsize, agent.UsualDiskBytes},
	} {
		if amount.asked > max(amount.have, amount.usual) {
			return &agent.Error{Kind: agent.KindInvalid, Step: amount.flag, Hint: fmt.Sprintf("give at most %dM", max(amount.have, amount.usual)>>20),
				Message: fmt.Sprintf("%d MiB are more than %s, which is %d MiB", amount.asked>>20, amount.where, amount.have>>20)}
		}
	}
	return nil
}
