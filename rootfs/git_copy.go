package rootfs

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"clove.run/clove/internal/gitdir"
)

// GitCopy reads what an agent left of a repository that it was shown. All of it is hostile.
type GitCopy struct {
	Git
	upper  beneath
	packed map[string]string // the refs of the snapshot
}

// OpenGit opens the agent's copy of the repository, with the rights that the layer takes.
func (l *Layer) OpenGit(layer Rights) (*GitCopy, error) {
	for _, upper := range l.Uppers() {
		if l.table.Git == nil || upper.Prefix != l.table.Git.Inside {
			continue
		}
		g := &GitCopy{Git: *l.table.Git}
		var packed []byte
		err := layer.do(func() (err error) {
			packed, err = os.ReadFile(filepath.Join(upper.Lower, "packed-refs"))
			return err
		})
		if err != nil {
			return nil, err
		}
		g.packed = gitdir.Packed(string(packed))
		g.upper, err = openBeneath(upper.Dir, 0, layer)
		return g, err
	}
	return nil, errors.New("the layer has no repository")
}

// Close closes the copy.
func (g *GitCopy) Close() { g.upper.close() }

// Names lists a directory; one that is not there has no names.
func (g *GitCopy) Names(dir string) ([]string, error) {
	at, err := g.upper.openDir(dir)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer at.Close()
	return namesIn(at)
}

// Open opens a regular file. The caller closes it.
func (g *GitCopy) Open(name string) (*os.File, error) { return g.upper.openRegular(name) }

// RefMove is a ref that the agent has moved.
type RefMove struct {
	Ref string // a branch, or HEAD
	Tip string // empty: it was removed, or does not name an object
}

// Moved lists the ref of the workspace if the agent has moved it, and the one that the agent is on
// instead, if that has commits. No other ref is read.
func (g *GitCopy) Moved() (moves []RefMove) {
	own := g.tip(g.Ref)
	if own != g.Tip {
		moves = append(moves, RefMove{Ref: g.Ref, Tip: own})
	}
	head, changed := g.short(path.Join(g.private(), "HEAD"))
	if !changed || g.Ref == "HEAD" {
		return moves
	}
	at := RefMove{Ref: "HEAD", Tip: gitdir.ID(head)}
	if ref, ok := strings.CutPrefix(strings.TrimSuffix(head, "\n"), "ref: "); ok && gitdir.IsRef(ref) {
		at.Ref, at.Tip = ref, g.tip(ref)
	}
	if at.Tip != "" && at.Tip != own && at.Tip != g.Tip && at.Tip != g.packed[at.Ref] {
		moves = append(moves, at)
	}
	return moves
}

// tip is the object that a ref names now; empty: none.
func (g *GitCopy) tip(ref string) string {
	if ref == "HEAD" {
		if head, changed := g.short(path.Join(g.private(), ref)); changed {
			return gitdir.ID(head)
		}
		return g.Tip
	}
	if loose, changed := g.short(ref); changed {
		return gitdir.ID(loose)
	}
	if packed, changed := g.short("packed-refs"); changed {
		return gitdir.Packed(packed)[ref]
	}
	return g.packed[ref]
}

// short reads a file that the agent wrote; changed is false if there is none. It is empty if the
// agent removed it, or made something else of it.
func (g *GitCopy) short(name string) (text string, changed bool) {
	b, err := readShort(g.upper, name)
	return string(b), !errors.Is(err, os.ErrNotExist)
}
