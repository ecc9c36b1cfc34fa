package rootfs

import (
	"context"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// carried records in c which consent a renamed directory needs for the host's own files in it,
// which the agent never touched: under another name a program may execute them. It refuses one
// with a link that would lead out of the workspace from there. The content of the host's files
// is not read: here a name is enough.
func (p *place) carried(ctx context.Context, c *Change, from, to string) (refusal, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	dir, err := p.differ.lower.openDir(from)
	if err == unix.EXDEV || p.differ.lower.hides(err) {
		return "", nil // the rename meets the same
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	names, err := namesIn(dir)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		st, ok, err := p.differ.lower.statAt(dir, name)
		if err != nil {
			return "", err
		}
		if !ok {
			continue
		}
		was, is, kind := path.Join(from, name), path.Join(to, name), fileType(st.Mode)
		switch kind {
		case TypeDir:
			if why, err := p.carried(ctx, c, was, is); why != "" || err != nil {
				return why, err
			}
			continue
		case TypeSymlink:
			link, err := p.differ.lower.readLink(dir, name)
			if err != nil {
				return "", err
			}
			if staysBelow(was, link) && !staysBelow(is, link) {
				return refusal("its link " + printable(name) + " would lead out of the workspace"), nil
			}
		}
		p.judgeCarried(c, was, is, st)
	}
	return "", nil
}

// judgeCarried looks at one file by its former and its new name.
func (p *place) judgeCarried(c *Change, was, is string, st unix.Stat_t) {
	kind := fileType(st.Mode)
	before, _ := classify(was, kind)
	class, program := classify(is, kind)
	inModules := func(rel string) bool { return slices.Contains(elementsOf(rel), "node_modules") }
	switch {
	case class == ClassExecutable && before != class:
		c.ExecutedBy = program
	case class == ClassInstructions && before != class:
		c.Instructs = program
	case inModules(is) || class == ClassOwn:
	case inModules(was) && strings.EqualFold(path.Base(is), "package.json"):
		c.ExecutedBy = "npm"
	case inModules(was) && isDocument(is):
		c.ExecutedBy = "clove"
	case kind == TypeSymlink || isDocument(is) || st.Mode&0o111 != 0:
		if folder := p.differ.dotFolder(is); folder != "" && p.differ.dotFolders[folder] == "" {
			p.differ.dotFolders[folder] = "a new folder " + folder + " with a program, a link or a document of the host's"
		}
	}
}
