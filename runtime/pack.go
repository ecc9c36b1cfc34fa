package runtime

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/beneath"
)

// Files that agents give each other pass through spools: tar archives of root's below the state
// directory. Root writes and removes them; they are read and written on threads that are the agents
// to the file systems.

// Pack writes the file, folder or link at path to to, as a tar archive whose names begin with as,
// a path inside of another sandbox. It reads what the agent itself could, by its Landlock rules,
// too. With folder, in which path is, it follows no link from there on: the agent, or an earlier life of
// its, could have made one to something else of the agent's. What cannot be copied is an error.
func (l *Live) Pack(ctx context.Context, inside, folder, as string, to io.Writer) error {
	top, err := cleanPath(as)
	if err != nil {
		return err
	}
	inside = path.Clean("/" + inside)
	return l.copyOut(ctx, true, to, func(c copier, archive io.Writer) error {
		place, err := c.place(inside, folder)
		if err != nil {
			return copyFailed(inside, err)
		}
		defer place.Close()
		return c.archiveAs(place, inside, top, archive)
	})
}

// place opens a path of the agent's, of a folder beneath that.
func (c copier) place(inside, folder string) (*os.File, error) {
	if folder == "" {
		return beneath.Open(c.root, inside, unix.O_PATH|unix.O_NOFOLLOW)
	}
	top, err := beneath.Open(c.root, folder, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	return beneath.OpenChild(top, path.Join(".", strings.TrimPrefix(inside, folder)), unix.O_PATH|unix.O_NOFOLLOW)
}

// cleanPath is an absolute path inside as names of an archive have it.
func cleanPath(at string) (string, error) {
	if !path.IsAbs(at) || path.Clean(at) != at || at == "/" || len(at) >= unix.PathMax {
		return "", &agent.Error{Kind: agent.KindInvalid, Step: "copy", Message: fmt.Sprintf("%.256q is not a clean absolute path below /", at),
			Hint: "name a path inside, such as " + agent.WorkspaceDir + "/input"}
	}
	return at[1:], nil
}

// Unpack makes a folder at path of what a tar archive has, with the agent's rights and Landlock
// rules. At path must be nothing, or an empty folder. The folders above are made. The new one
// appears as a whole, or not at all.
func (l *Live) Unpack(ctx context.Context, inside string, from io.Reader) error {
	name, err := cleanPath(inside)
	if err != nil {
		return err
	}
	return l.copyIn(ctx, true, from, func(c copier, archive io.Reader) error {
		parent, err := folderFor(c.root, path.Dir(name))
		if err != nil {
			return copyFailed(inside, err)
		}
		defer parent.Close()
		return c.inNew(parent, path.Base(name), inside, archive)
	})
}

// inNew unpacks an archive in a new folder beside the one that it becomes.
func (c copier) inNew(parent *os.File, base, name string, from io.Reader) (err error) {
	if err := cmp.Or(c.onDisk(parent), vacant(parent, base)); err != nil {
		return copyFailed(name, err)
	}
	dir, temporary := int(parent.Fd()), ".clove-"+rand.Text()
	if err := unix.Mkdirat(dir, temporary, 0o755); err != nil {
		return copyFailed(name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeAll(parent, temporary))
		}
	}()
	folder, err := beneath.OpenChild(parent, temporary, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return copyFailed(name, err)
	}
	defer folder.Close()
	if err := c.unpack(folder, name, from); err != nil {
		return err
	}
	err = unix.Renameat(dir, temporary, dir, base) // in place of an empty folder at most
	if isAny(err, unix.EEXIST, unix.ENOTEMPTY, unix.ENOTDIR, unix.EBUSY) {
		return occupied()
	}
	if err != nil {
		return copyFailed(name, err)
	}
	return nil
}

func occupied() error {
	return &agent.Error{Kind: agent.KindConflict, Step: "copy", Message: "something is at the path already", Hint: "name a path at which there is nothing, or an empty folder"}
}

// vacant refuses a name that is taken by anything but an empty folder.
func vacant(parent *os.File, base string) error {
	folder, err := beneath.OpenChild(parent, base, unix.O_RDONLY|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case isAny(err, unix.ENOTDIR, unix.ELOOP):
		return occupied()
	case err != nil:
		return err
	}
	defer folder.Close()
	if names, err := folder.Readdirnames(1); len(names) > 0 {
		return occupied()
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// removeAll removes a folder of the agent's, which may change it meanwhile.
func removeAll(parent *os.File, name string) error {
	at, err := os.OpenRoot(fmt.Sprintf("/proc/thread-self/fd/%d", parent.Fd()))
	if err != nil {
		return err
	}
	defer at.Close()
	return at.RemoveAll(name)
}

// given are the files that a parent gives a launch.
type given struct{ *launch }

// put makes the agent's Landlock rules, and puts the files of the run's spools into its sandbox, in
// which nothing of the agent's runs yet. It has the agent's rights. The spools stay until the agent
// may execute: a start that fails in between finds them again.
func (l given) put() error {
	if err := l.makeRuleset(); err != nil {
		return err
	}
	spools := l.runtime.paths.Spools().of(l.spec.ID)
	for _, name := range spools {
		if err := l.putSpool(name); err != nil {
			return err
		}
	}
	if err := l.putSecrets(); err != nil {
		return err
	}
	if len(spools) > 0 && l.spec.Restart.Policy.Restarts() {
		return l.tree.Sync() // the spools are gone when it starts again
	}
	return nil
}

func (l given) putSpool(name string) error {
	spool, err := os.Open(name)
	if err != nil {
		return err
	}
	defer spool.Close()
	return l.putArchive(bufio.NewReaderSize(heeding{spool, l.goesOn}, 64<<10), true)
}

// putArchive unpacks an archive at the root, with the agent's rights. What is confined is another agent's.
func (l given) putArchive(archive io.Reader, confined bool) error {
	root, err := rootOf(l.box.pid)
	if err != nil {
		return err
	}
	defer root.Close()
	c := copier{root: root, hostID: l.run.Lease.HostID(), uid: l.spec.User.UID, gid: l.spec.User.GID, confined: confined, ruleset: l.ruleset}
	return c.do(func() error { return c.in("/", archive) })
}

// heeding is a reader for as long as the step that reads may go on. Each read is progress.
type heeding struct {
	io.Reader
	goesOn func() error
}

func (h heeding) Read(data []byte) (int, error) {
	if err := h.goesOn(); err != nil {
		return 0, err
	}
	return h.Reader.Read(data)
}
