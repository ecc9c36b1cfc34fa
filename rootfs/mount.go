package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"clove.run/clove/internal/undo"
	"golang.org/x/sys/unix"
)

// Tree is a root that was built. It belongs to the mount namespace of the thread that
// called Mount. Close and Discard must be called there; the other methods work on any
// thread.
type Tree struct {
	Root string // the root's path in that mount namespace
	// Unmapped are the host directories whose file system cannot be id-mapped. Those of the
	// base appear as files of the user nobody; a workspace was copied.
	Unmapped []string
	// HomeCopied means that another run has the kept home, and that this one has a copy of it,
	// which is not kept.
	HomeCopied bool

	userns  *os.File // maps id 0 to HostID, 1 to HostID+1, …: the agent's own
	image   string   // of the layer
	layer   *os.File // root directory of the writable layer
	table   table
	before  Usage
	aside   aside
	undo    *undo.Stack // unmounts everything
	discard *undo.Stack // removes the image, after undo
}

// builder is the state of one Mount.
type builder struct {
	cfg     Config
	tree    *Tree
	undo    undo.Stack
	discard undo.Stack
	stage   *os.File // the stage's root
	root    *os.File // the root under construction; nil before its overlay exists
	maps    namespaces
	// writable is where the stage has the uppers: the layer, or an id-mapped mount of it.
	writable string
	home     shownHome
}

// Mount builds the root. The calling goroutine must be locked to a thread with a private
// mount namespace of its own. After an error everything is undone, the image included.
func (p Plan) Mount() (*Tree, error) {
	b := &builder{cfg: p.cfg, maps: startNamespaces(p.cfg, p.operations), writable: "layer"}
	b.tree = &Tree{Root: filepath.Join(p.cfg.stage(), "root"), image: p.cfg.image()}
	b.tree.table = table{Version: tableVersion, ID: p.cfg.ID, HostID: p.cfg.HostID}
	err := b.runAll(p)
	// Also after an error, because its goroutines and handles belong to the building.
	b.close()
	if err != nil {
		return nil, errors.Join(err, b.undo.Run(), b.discard.Run())
	}
	if p.cfg.kept && p.cfg.seed == "" { // only now, so that a failed start does not lose the agent's files
		b.discard.Add("image", func() error { return os.Remove(p.cfg.image()) })
	}
	b.tree.undo, b.tree.discard = b.undo.Take(), b.discard.Take()
	return b.tree, nil
}

// runAll executes the operations in order, and then takes the user namespace, which all
// mounts of the tree share.
func (b *builder) runAll(p Plan) error {
	for k, s := range p.operations {
		var err error
		if p.fault != nil {
			err = p.fault(k)
		}
		if err == nil {
			err = s.run(b)
		}
		if err != nil {
			return fmt.Errorf("cannot build the root: %s: %w", firstLine(s.String()), err)
		}
	}
	var err error
	if b.tree.userns, err = b.maps.take(shiftMap(p.cfg.HostID)); err != nil {
		return err
	}
	b.undo.Add("user namespace", b.tree.userns.Close)
	// Usage is counted from here. A kept layer has the agent's files in it already, so its
	// table says what the empty one held.
	if b.tree.before, err = b.tree.held(); err == nil && p.cfg.kept {
		b.tree.before.Bytes, b.tree.before.Inodes = b.tree.table.EmptyBytes, b.tree.table.EmptyInodes
	}
	return err
}

// close closes the handles that only the building needs.
func (b *builder) close() {
	b.maps.close()
	for _, f := range []*os.File{b.root, b.stage} {
		if f != nil {
			f.Close()
		}
	}
}

// staged is a path below the stage through its handle (/proc/self/fd). So the mount table,
// which the agent can read, shows nothing of the host's directories, and no character of
// them can be taken for a separator of mount options.
func (b *builder) staged(elements ...string) string {
	return filepath.Join(append([]string{fdPath(b.stage)}, elements...)...)
}

// upper makes the upper directory of the overlay at target, with the owner and mode of
// like, because a merged directory shows its upper's. The upper of a kept layer is not
// changed. work is overlayfs's work directory for it.
func (b *builder) upper(index int, target, host, like string) (dir, work string, err error) {
	number, known := b.tree.table.place(index, target)
	name := filepath.Join("upper", number)
	dir, work = b.staged(b.writable, name), b.staged(b.writable, "work", number)
	if known {
		return dir, work, nil
	}
	var stat unix.Stat_t
	if err := unix.Stat(like, &stat); err != nil {
		return "", "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", "", err
	}
	uid, gid := stat.Uid, stat.Gid
	if b.cfg.User != nil && target == workspaceDir {
		// The agent's additions belong to the agent, whichever user owns the workspace on the host.
		uid, gid = b.cfg.HostID+b.cfg.AgentUID, b.cfg.HostID+b.cfg.AgentGID
	}
	if err := unix.Chown(dir, int(uid), int(gid)); err != nil {
		return "", "", err
	}
	if err := unix.Chmod(dir, stat.Mode&0o7777); err != nil {
		return "", "", err
	}
	b.tree.table.Uppers = append(b.tree.table.Uppers, Upper{Dir: name, Prefix: target, Lower: host})
	return dir, work, nil
}

// openRoot opens the root's own overlay, inside which all later targets are resolved.
func (b *builder) openRoot() error {
	root, err := os.OpenFile(b.staged("root"), unix.O_PATH|unix.O_DIRECTORY, 0)
	b.root = root
	return err
}

// UserNamespace is the path of the agent's user namespace for other processes of this host.
// It is valid while this process lives and the Tree is open. Its owner is neither the
// host's root nor another agent.
func (t *Tree) UserNamespace() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), t.userns.Fd())
}

// Close unmounts everything and keeps the image.
func (t *Tree) Close() error {
	t.discard.Release()
	return t.undo.Run()
}

// Discard unmounts everything and removes the image.
func (t *Tree) Discard() error {
	return errors.Join(t.undo.Run(), t.discard.Run())
}

func fdPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
