package gitpull

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clove.run/clove/internal/nsthread"
)

// Pull is one branch to take over.
type Pull struct {
	From   Source
	Common string // the host's repository, a canonical path
	Own    string // the git directory of the folder that is on the branch
	Ref    string // the branch, or HEAD of that folder
	Base   string // what Ref named when the agent began; empty: there was no commit
	Now    string // what it names now; empty: there is no commit
	Tip    string // where the agent has moved it
	// Elsewhere: Tip is not on Ref. Its objects are taken over, and Ref stays where it is.
	Elsewhere bool
	As        nsthread.Identity
	Empty     string // a directory to mount on, in a mount namespace of its own
}

// Refusal says why the ref was not moved, although nothing is broken.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// patience bounds one pull.
const patience = 15 * time.Minute

// Do takes the objects over and moves the ref. lost says what of the folder does not agree with
// it then. A Refusal leaves the ref as it is; if it is about the ref alone, the objects
// are in the repository.
func (p Pull) Do(ctx context.Context) (lost string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := p.begin()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	if err := w.collect(ctx); err != nil {
		return "", refused("objects of the agent's are refused", err)
	}
	pack, err := w.verify(ctx)
	if err != nil {
		return "", refused("the agent's commits are refused", err)
	}
	if pack != "" {
		if err := w.keep(); err != nil {
			return "", err
		}
	}
	if p.Elsewhere {
		return "", Refusal("only the branch of the workspace is moved; nothing is lost: git branch NAME " + p.Tip)
	}
	return w.move(ctx)
}

// refused makes what git says of an agent's objects a Refusal. Other errors are the host's.
func refused(what string, err error) error {
	var git *failure
	if errors.As(err, &git) || errors.Is(err, errDamaged) {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return Refusal(what + ": " + fmt.Sprintf("%.300q", line))
	}
	return err
}

// work is a pull that is on its way.
type work struct {
	Pull
	owner      *nsthread.Thread // has the rights of the repository's owner
	box        *box
	quarantine string
}

func (w *work) raw() string   { return filepath.Join(w.quarantine, "raw") }
func (w *work) final() string { return filepath.Join(w.quarantine, "final") }

func (p Pull) begin() (_ *work, err error) {
	w := &work{Pull: p}
	if w.owner, err = nsthread.StartAs(p.As); err != nil {
		return nil, err
	}
	if err = w.owner.Do(w.makeQuarantine); err == nil {
		w.box, err = newBox(p.Empty, p.Common, p.As)
	}
	if err == nil {
		w.box.env = []string{"GIT_DIR=" + p.Own, "GIT_WORK_TREE=/"} // a submodule's configuration names one that is not there
		err = w.box.thread.Do(func() error { return w.box.show(w.quarantine, p.As, 0) })
	}
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// makeQuarantine makes two directories of objects, with the host's as their alternate.
func (w *work) makeQuarantine() (err error) {
	objects := filepath.Join(w.Common, "objects")
	if w.quarantine, err = os.MkdirTemp(objects, "tmp_objdir-clove-"); err != nil {
		return err
	}
	for _, dir := range []string{w.raw(), w.final()} {
		if err = errors.Join(os.MkdirAll(filepath.Join(dir, "info"), 0o777), os.Mkdir(filepath.Join(dir, "pack"), 0o777)); err != nil {
			return err
		}
		if err = os.WriteFile(filepath.Join(dir, "info", "alternates"), []byte(objects+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) end() (err error) {
	if w.box != nil {
		w.box.close()
	}
	if w.quarantine != "" {
		err = w.owner.Do(func() error { return os.RemoveAll(w.quarantine) })
	}
	w.owner.Close()
	return err
}

// collect brings all objects of the agent's into raw.
func (w *work) collect(ctx context.Context) error {
	left, err := list(w.From)
	if err != nil {
		return err
	}
	for _, name := range left.packs {
		file, err := w.From.Open(name)
		if err != nil {
			return err
		}
		_, err = w.box.git(ctx, w.raw(), io.LimitReader(file, mostBytes), nil, "index-pack", "--stdin")
		file.Close()
		if err != nil {
			return err
		}
	}
	if len(left.loose) == 0 {
		return nil
	}
	pack, to := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := writePack(ctx, to, w.From, left.loose)
		_ = to.CloseWithError(err) // it returns nil
		written <- err
	}()
	_, err = w.box.git(ctx, w.raw(), pack, nil, "index-pack", "--stdin")
	pack.Close() // the writer does not wait for a reader that has ended
	if failed := <-written; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed
	}
	return err
}

// verify makes one pack in final of what the tip needs and the host has not. pack is empty if
// that is nothing.
func (w *work) verify(ctx context.Context) (pack string, err error) {
	var branch *os.File
	err = w.owner.Do(func() (err error) {
		branch, err = os.OpenFile(filepath.Join(w.quarantine, "branch"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	})
	if err != nil {
		return "", err
	}
	defer branch.Close()
	wanted := w.Tip + "\n"
	if w.Now != "" {
		wanted += "^" + w.Now + "\n"
	}
	if _, err = w.box.git(ctx, w.raw(), strings.NewReader(wanted), branch, "pack-objects", "--revs", "--local", "--stdout", "-q"); err != nil {
		return "", err
	}
	var count [4]byte // behind "PACK" and the version
	if _, err := branch.ReadAt(count[:], 8); err != nil || count == [4]byte{} {
		return "", err
	}
	if _, err := branch.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return w.box.git(ctx, w.final(), branch, nil, "index-pack", "--strict", "--stdin")
}

// keep moves the pack into the repository: its index last, by which git finds it.
func (w *work) keep() error {
	return w.owner.Do(func() error {
		entries, err := os.ReadDir(filepath.Join(w.final(), "pack"))
		if err != nil {
			return err
		}
		for _, suffix := range []string{".pack", ".rev", ".idx"} {
			for _, e := range entries {
				if !isPack(e.Name(), suffix) {
					continue
				}
				to := filepath.Join(w.Common, "objects", "pack", e.Name())
				if err := os.Rename(filepath.Join(w.final(), "pack", e.Name()), to); err != nil {
					return fmt.Errorf("cannot keep the agent's objects: %w", err)
				}
			}
		}
		return nil
	})
}

// move moves the ref and makes the folder's index agree with it.
func (w *work) move(ctx context.Context) (lost string, err error) {
	nothing := strings.NewReader("")
	if w.Now != "" && w.Now != w.Base {
		if _, err := w.box.git(ctx, "", nothing, nil, "merge-base", "--is-ancestor", w.Now, w.Tip); err != nil {
			return "", w.moved()
		}
	}
	if err := w.box.unseal(w.Common); err != nil {
		return "", err
	}
	old := w.Now
	if old == "" {
		old = strings.Repeat("0", len(w.Tip))
	}
	if _, err := w.box.git(ctx, "", nothing, nil, "update-ref", "--no-deref", "-m", "clove: apply", w.Ref, w.Tip, old); err != nil {
		var git *failure
		if errors.As(err, &git) && strings.Contains(git.text, "but expected") {
			return "", w.moved()
		}
		return "", refused(w.Ref+" was not moved", err)
	}
	trees := []string{"read-tree", "-i", "-m", w.Tip}
	if w.Now != "" {
		trees = []string{"read-tree", "-i", "-m", w.Now, w.Tip}
	}
	if _, err := w.box.git(ctx, "", nothing, nil, trees...); err != nil {
		return "its index, which has staged changes of yours: see git status", nil
	}
	return "", nil
}

func (w *work) moved() error {
	return Refusal("it has moved on the host since; nothing is lost: git merge " + w.Tip)
}
