package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"clove.run/clove/internal/gitdir"
)

// gitLayer is the directory of the layer that has the snapshot of a repository. It is the lower
// layer of the overlay at Git.Inside.
const gitLayer = "git"

// Git is the repository of a workspace whose .git is a file, as the layer began.
type Git struct {
	Inside string `json:"inside"` // where git inside finds the repository
	Common string `json:"common"` // the host's repository
	Own    string `json:"own"`    // the host's git directory of the workspace
	Ref    string `json:"ref"`    // what a commit in the workspace moves: a branch, or HEAD
	Tip    string `json:"tip"`    // what Ref named; empty: there was no commit
}

// private is the path of the workspace's own git directory below the repository.
func (g Git) private() string {
	return gitdir.Link{Own: g.Own, Common: g.Common}.Private()
}

// repository is what a plan has of a repository.
type repository struct {
	Git
	files   map[string]string
	objects source
}

// readRepository finds the repository of the workspace, with the rights of the calling thread. It
// is nil if there is none, or none that belongs to the workspace: git does not work inside
// then, and `clove run` reports the reason. One that was named is shown, or an error.
func (f *hostInfo) readRepository(cfg Config) (*repository, error) {
	if cfg.NoRepository {
		return nil, nil
	}
	link, found := gitdir.Find(f.Workspace.Path, cfg.GitDir)
	if !found && cfg.GitDir != "" {
		return nil, fmt.Errorf("cannot show the repository %s: the workspace has no file .git that leads to it", cfg.GitDir)
	}
	inside := link.Inside(workspaceDir)
	if !found || slices.ContainsFunc(cfg.Binds, func(b Bind) bool { return within(inside, b.Target) }) {
		return nil, nil
	}
	r, err := snapshotOf(link, cfg)
	switch {
	case err == nil:
		return r, nil
	case cfg.GitDir == "":
		return nil, nil
	}
	return nil, fmt.Errorf("cannot show the repository %s: .git leads to %s, which %w", cfg.GitDir, link.Dir, err)
}

// snapshotOf reads what is shown of a repository.
func snapshotOf(link gitdir.Link, cfg Config) (*repository, error) {
	if link.Common == "" {
		return nil, errors.New(link.Foreign)
	}
	snapshot, err := link.Read(workspaceDir)
	if err != nil {
		return nil, err
	}
	r := repository{Git: Git{Inside: link.Inside(workspaceDir), Common: link.Common, Own: link.Own, Ref: snapshot.Ref, Tip: snapshot.Tip}, files: snapshot.Files}
	objects := path.Join(link.Common, "objects")
	if r.objects, err = readSource("objects", objects, cfg, true); err != nil {
		return nil, fmt.Errorf("cannot appear: %w", err)
	}
	// It was a directory of the owner's when it was found, and the owner may have changed it.
	if r.objects.Path != objects || r.objects.Owner != link.Owner {
		return nil, errors.New("has objects that are another's")
	}
	return &r, nil
}

// planRepository shows the repository: the snapshot copy on write, and in it the host's objects,
// which git inside uses as an alternate. A bind and no overlay, so that packs appear that the
// host makes meanwhile.
func (p *planner) planRepository() []wanted {
	r := p.hostInfo.Repository
	if r == nil {
		return nil
	}
	shared := path.Join(r.Inside, gitdir.SharedObjects)
	return []wanted{
		{r.Inside, func() {
			p.add(gitOp{Git: r.Git, Entries: r.entries(p.cfg)})
			p.overlay(overlayOp{Target: r.Inside, Sources: []string{gitLayer}, Map: shiftMap(p.cfg.HostID)})
			if !p.cfg.staysWritable(workspaceDir) {
				p.base = append(p.base, r.Inside)
			}
		}},
		{shared, func() {
			p.add(bindOp{Source: r.objects.Path, Target: shared, Map: p.callersMap(r.objects), Dir: true, ReadOnly: true, As: p.cfg.User})
		}},
	}
}

// entries are the snapshot for the layer. All of it is the agent's.
func (r repository) entries(cfg Config) []entry {
	known := map[string]entry{}
	for _, dir := range []string{"/objects/pack", "/refs/heads", "/refs/tags"} {
		known[dir] = entry{Path: dir, Kind: kindDir, Mode: 0o755}
	}
	for name, text := range r.files {
		known["/"+name] = entry{Path: "/" + name, Kind: kindFile, Mode: 0o644, Data: text}
	}
	all := withParents(known)
	for i := range all {
		all[i].UID, all[i].GID = cfg.AgentUID, cfg.AgentGID
	}
	return all
}

// gitOp writes the snapshot into the layer. A kept layer keeps that of its first start: what the
// agent committed since is upon it.
type gitOp struct {
	Git
	Entries []entry
}

func (s gitOp) String() string {
	return fmt.Sprintf("repository %s at %s, %s, %d entries", s.Common, s.Inside, s.Ref, len(s.Entries))
}

func (s gitOp) run(b *builder) error {
	if old := b.tree.table.Git; old != nil {
		if old.Inside != s.Inside || old.Common != s.Common || old.Own != s.Own {
			return fmt.Errorf("the layer is on the repository %s, and the workspace has %s", printable(old.Common), printable(s.Common))
		}
		return nil
	}
	if err := os.Mkdir(b.staged("layer", gitLayer), 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	for _, e := range s.Entries {
		if err := e.write(b.staged("layer", gitLayer)); err != nil {
			return err
		}
	}
	b.tree.table.Git = &s.Git
	return nil
}

// Git is the repository that the agent was shown; nil: none.
func (l *Layer) Git() *Git { return l.table.Git }
