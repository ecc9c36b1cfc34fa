package callout

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/rlimits"
)

// Within is where a command runs.
type Within struct {
	Cgroups []string       `json:"cgroups"` // directories that it joins
	Rlimits []agent.Rlimit `json:"rlimits"` // those of the user; none above the caller's hard limits is set
}

// Argument is the first argument with which the caller's program is started again. Such a
// process joins the cgroups, takes the limits and ids, and becomes the command: the command
// itself never runs without them. No subcommand may have this name.
const Argument = "become-callout"

// becoming is what that process is given.
type becoming struct {
	Within
	Owner agent.Owner `json:"owner"`
	Shell string      `json:"shell"` // the command
}

// notStarted is the exit status where the command could not be executed, as sh has it.
const notStarted = 126

// Main is the whole process that begins with Argument. It does not return.
func Main(arguments []string) {
	var b becoming
	err := fmt.Errorf("it takes one argument")
	if len(arguments) == 1 {
		err = json.Unmarshal([]byte(arguments[0]), &b)
	}
	if err == nil {
		err = b.become()
	}
	fmt.Fprintln(os.Stderr, "cannot start the command:", err)
	os.Exit(notStarted)
}

// become returns only with an error. The cgroups and the OOM killer's score need root, so the
// ids come after them.
func (b becoming) become() error {
	for _, dir := range b.Cgroups {
		if err := put(filepath.Join(dir, "cgroup.procs"), "0"); err != nil {
			return err
		}
	}
	if err := losePrivilegedScore(); err != nil {
		return err
	}
	if uid, gid := int(b.Owner.UID), int(b.Owner.GID); uid != os.Geteuid() {
		if err := unix.Setgroups(nil); err != nil {
			return err
		}
		if err := unix.Setresgid(gid, gid, gid); err != nil {
			return err
		}
		if err := unix.Setresuid(uid, uid, uid); err != nil {
			return err
		}
	}
	// Last, because they hold for this program too, which needs more memory than a shell.
	for _, limit := range b.Rlimits {
		if err := lower(limit); err != nil {
			return fmt.Errorf("cannot limit %s: %w", limit.Name, err)
		}
	}
	return unix.Exec("/bin/sh", []string{"/bin/sh", "-c", b.Shell}, os.Environ())
}

// lower sets a limit, and never one above this process's own.
func lower(limit agent.Rlimit) error {
	number, known := rlimits.Resource(limit.Name)
	if !known {
		return unix.EINVAL
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(number, &own); err != nil {
		return err
	}
	hard := min(limit.Hard, own.Max)
	return unix.Setrlimit(number, &unix.Rlimit{Cur: min(limit.Soft, hard), Max: hard})
}

// losePrivilegedScore takes a negative score of the caller's, which keeps the OOM killer away
// from it (proc_pid_oom_score_adj(5)).
func losePrivilegedScore() error {
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil || len(text) == 0 || text[0] != '-' {
		return err
	}
	return put(file, "0")
}

// put writes to a control file, in one system call.
func put(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
