package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/sparse"
)

// becomeAgent gives the calling thread, which must be locked and never be used again for
// anything else, the agent's ids for files. The kernel takes the capabilities over files
// away with the id (capabilities(7)), so the thread can open only what the agent could,
// wherever the agent makes a path lead.
func becomeAgent(uid, gid uint32) error {
	// Raw: x/sys would change every thread.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("cannot drop groups: %w", errno)
	}
	unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0)
	unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	// setfsuid(2) reports no error, only the previous id. A second call with an id that
	// cannot exist changes nothing and returns the present one.
	const none = ^uintptr(0)
	nowGID, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, none, 0, 0)
	nowUID, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, none, 0, 0)
	if uint32(nowUID) != uid || uint32(nowGID) != gid {
		return fmt.Errorf("cannot take the agent's ids: they are %d and %d", nowUID, nowGID)
	}
	return nil
}

// copyFailed turns the kernel's refusal of a path into an error of a kind that callers
// know, with a hint. An error that has a kind already passes unchanged.
func copyFailed(path string, err error) error {
	var known *agent.Error
	if errors.As(err, &known) {
		return err
	}
	kind, hint := agent.KindInternal, ""
	switch {
	case isAny(err, unix.ENOENT, unix.ENOTDIR):
		kind, hint = agent.KindNotFound, "paths are those inside the sandbox: `clove exec NAME ls -l "+filepath.Dir(path)+"` shows what is there"
	case isAny(err, unix.EROFS):
		kind, hint = agent.KindPrivilege, "it is read-only inside"
	case isAny(err, unix.EACCES, unix.EPERM):
		kind, hint = agent.KindPrivilege, "a copy has the agent's own rights"
	case isAny(err, unix.ELOOP, unix.EXDEV, unix.EISDIR, unix.EEXIST, unix.ENAMETOOLONG):
		kind, hint = agent.KindInvalid, "something of another kind has that name, or a link is in its path"
	case isAny(err, unix.ENOSPC, unix.EDQUOT):
		kind, hint = agent.KindConflict, "the file system there is full: --disk is the size of the agent's own"
	case errors.As(err, new(notCopied)):
		kind, hint = agent.KindPrivilege, "only files, folders and links are copied, with at most 1 TiB of holes, and 16 GiB between agents"
	case errors.Is(err, sparse.ErrHoles):
		kind, hint = agent.KindInvalid, "an archive may have 1 TiB of them, and 16 GiB between agents"
	}
	return &agent.Error{Kind: kind, Step: "copy", Message: "cannot copy " + path, Hint: hint, Err: err}
}

func isAny(err error, numbers ...unix.Errno) bool {
	return slices.ContainsFunc(numbers, func(n unix.Errno) bool { return errors.Is(err, n) })
}

// copier does one copy, on a thread with the agent's ids.
type copier struct {
	root     *os.File
	hostID   uint32 // of id 0 inside
	uid, gid uint32 // the agent's, inside
	kept     bool   // it reads a layer, not a root: a whiteout is no file
	// confined says that an agent asks for the copy: it gets no further than the agent itself, by its Landlock
	// rules, and nothing goes where no disk of the agent's is charged.
	confined bool
	ruleset  *os.File // of confined; nil: there are none
}

// do runs f on a thread that is the agent to the file systems, and ends with it.
func (c copier) do(f func() error) error {
	thread, err := nsthread.Start(0)
	if err != nil {
		return err
	}
	defer thread.Close()
	return thread.Do(func() error {
		if err := becomeAgent(c.hostID+c.uid, c.hostID+c.gid); err != nil {
			return err
		}
		if c.ruleset != nil {
			// Raw, for this thread alone. It keeps CAP_SYS_ADMIN, so it needs no no_new_privs.
			if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, c.ruleset.Fd(), 0, 0); errno != 0 {
				return fmt.Errorf("cannot take the agent's Landlock rules: %w", errno)
			}
		}
		return f()
	})
}

// onDisk refuses a folder in memory to an agent's copy: the kernel would charge it to clove.
func (c copier) onDisk(folder *os.File) error {
	if !c.confined {
		return nil
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &s); err != nil {
		return err
	}
	if s.Type == unix.TMPFS_MAGIC {
		return &agent.Error{Kind: agent.KindInvalid, Step: "copy", Message: "the folder is in memory, and files of others go to a disk only",
			Hint: "name a path below " + agent.WorkspaceDir}
	}
	return nil
}
