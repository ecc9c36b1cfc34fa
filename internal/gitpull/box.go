package gitpull

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/gitdir"
	"clove.run/clove/internal/nsthread"
)

// box is a thread in whose namespaces git is started.
type box struct {
	thread *nsthread.Thread
	root   string // of git, a path in the thread's mount namespace
	as     nsthread.Identity
	env    []string
}

// programDirs have git and what it is linked with.
var programDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// newBox makes a root at empty, a directory that only this mount namespace covers. It shows common
// read-only.
func newBox(empty, common string, as nsthread.Identity) (*box, error) {
	thread, err := nsthread.Start(unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS)
	if err != nil {
		return nil, err
	}
	b := &box{thread: thread, root: empty, as: as}
	if err := thread.Do(func() error { return b.build(common) }); err != nil {
		thread.Close()
		return nil, fmt.Errorf("cannot build a sandbox for git: %w", err)
	}
	return b, nil
}

func (b *box) build(common string) error {
	if err := unix.Mount("clove", b.root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return err
	}
	for _, dir := range programDirs {
		info, err := os.Lstat(dir)
		switch {
		case err != nil:
			continue
		case info.Mode()&os.ModeSymlink != 0:
			var link string
			if link, err = os.Readlink(dir); err == nil {
				err = os.Symlink(link, b.root+dir)
			}
		default:
			err = b.show(dir, nsthread.Identity{}, unix.MOUNT_ATTR_RDONLY)
		}
		if err != nil {
			return err
		}
	}
	if err := os.Mkdir(b.root+"/dev", 0o755); err != nil {
		return err
	}
	for _, device := range []string{"/dev/null", "/dev/urandom"} { // git does not work without them
		at := b.root + device
		if err := errors.Join(os.WriteFile(at, nil, 0o600), unix.Mount(device, at, "", unix.MS_BIND, "")); err != nil {
			return err
		}
	}
	if err := b.show(common, b.as, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	// For root's own repositories: a program that root executes gets no capability.
	for capability := uintptr(0); ; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err == unix.EINVAL && capability > 0 {
			break
		} else if err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// show mounts dir at its own path in the root. It is opened with the rights of as, and by no link.
func (b *box) show(dir string, as nsthread.Identity, attributes uint64) error {
	beside, err := nsthread.StartBesideAs(as)
	if err != nil {
		return err
	}
	defer beside.Close()
	var from int
	err = beside.Do(func() (err error) {
		from, err = unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", dir, err)
	}
	defer unix.Close(from)
	clone, err := unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("cannot clone the mount of %s: %w", dir, err)
	}
	defer unix.Close(clone)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | attributes}
	if err := unix.MountSetattr(clone, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	if err := os.MkdirAll(b.root+dir, 0o755); err != nil {
		return err
	}
	return unix.MoveMount(clone, "", unix.AT_FDCWD, b.root+dir, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// unseal lets git write to dir, which the root shows.
func (b *box) unseal(dir string) error {
	return b.thread.Do(func() error {
		return unix.MountSetattr(unix.AT_FDCWD, b.root+dir, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	})
}

// bounded is a shell that becomes git with bounds on memory, processor time, and the size of a
// file. Only the process itself can set them before git begins.
var bounded = fmt.Sprintf(`ulimit -c 0 && ulimit -d %d && ulimit -t 600 && ulimit -f %d && exec git "$@"`, 2<<20, mostBytes>>9)

// settings keep the memory within its bound.
var settings = []string{"core.packedGitLimit=1g", "core.packedGitWindowSize=32m", "core.bigFileThreshold=64m", "pack.windowMemory=256m", "pack.threads=1", "index.threads=1"}

// failure is git's own account of why it failed.
type failure struct {
	err  error
	text string
}

func (f *failure) Error() string { return f.err.Error() + ": " + f.text }
func (f *failure) Unwrap() error { return f.err }

// git runs one command of git's, and returns what it writes to stdout unless to gets that.
func (b *box) git(ctx context.Context, objects string, stdin io.Reader, to *os.File, arguments ...string) (string, error) {
	var out, complaint strings.Builder
	all := []string{"-c", bounded, "git"}
	for _, s := range slices.Concat(gitdir.Disarm, settings) {
		all = append(all, "-c", s)
	}
	c := exec.CommandContext(ctx, "/bin/sh", append(all, arguments...)...)
	c.Dir, c.Env = "/", slices.Concat(gitdir.Environment, []string{"PATH=/usr/local/bin:/usr/bin:/bin", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_COMMITTER_NAME=clove", "GIT_COMMITTER_EMAIL=clove@localhost"}, b.env)
	if objects != "" {
		c.Env = append(c.Env, "GIT_OBJECT_DIRECTORY="+objects)
	}
	c.Stdin, c.Stdout, c.Stderr = stdin, &short{&out}, &short{&complaint}
	if to != nil {
		c.Stdout = to
	}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: b.root, Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL,
		Credential: &syscall.Credential{Uid: b.as.UID, Gid: b.as.GID, Groups: b.as.Groups}}
	if err := b.thread.Do(c.Start); err != nil {
		return "", fmt.Errorf("cannot start git of the host: %w", err)
	}
	err := c.Wait()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case c.ProcessState.ExitCode() == notFound:
		err = errors.New("the host has no git below /usr or /bin")
	case err != nil:
		err = &failure{err, strings.TrimSpace(complaint.String())}
	}
	return strings.TrimSpace(out.String()), err
}

// notFound is the status of a shell that does not find a program.
const notFound = 127

// short keeps the beginning of what git writes.
type short struct{ text *strings.Builder }

func (s *short) Write(p []byte) (int, error) {
	s.text.Write(p[:max(0, min(len(p), 4096-s.text.Len()))])
	return len(p), nil
}

func (b *box) close() { b.thread.Close() }
