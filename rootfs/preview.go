package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/rootfs/linked"
)

// preview finds files as the agent will, while nothing is mounted: by the plan, on the host.
type preview struct {
	plan    Plan
	entries map[string]entry // of the skeleton, by path
	nodes   map[string]node  // of paths without links on the way
}

// node is what a path of the root is, itself and not what it leads to.
type node struct {
	Kind entryKind // empty: nothing, or neither a directory, a file nor a link
	Link string    // a link's target
	Host string    // where it is on the host; empty: clove makes it
	// Planted: the agent may change a link on the way, or has changed it in an earlier run.
	Planted bool
}

// mostFollowed bounds the links on one path, as the kernel does (path_resolution(7)).
const mostFollowed = 40

func newPreview(p Plan) preview {
	v := preview{plan: p, entries: map[string]entry{}, nodes: map[string]node{}}
	common, own := p.hostInfo.skeleton(), personal(p.cfg, p.hostInfo)
	if p.cfg.Rootfs != "" {
		common, own = rootfsSkeleton(), rootfsPersonal(p.cfg)
	}
	for _, e := range slices.Concat(common, own) {
		v.entries[e.Path] = e
	}
	return v
}

// resolve follows all links of a path, inside the root, and returns what is at its end.
func (v preview) resolve(at string) (real string, n node, err error) {
	real, rest, followed, planted := "/", strings.Split(at, "/"), 0, false
	n = node{Kind: kindDir}
	defer func() { n.Planted = planted }()
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real, n = path.Dir(real), node{Kind: kindDir}
			continue
		}
		next := path.Join(real, name)
		if n, err = v.node(next); err != nil {
			return next, n, err
		}
		switch {
		case n.Kind == "" || n.Kind == kindFile && len(rest) > 0:
			return next, node{}, fmt.Errorf("nothing is at %s: %w", path.Join(append([]string{next}, rest...)...), fs.ErrNotExist)
		case n.Kind != kindLink:
			real = next
			continue
		}
		if followed++; followed > mostFollowed {
			return next, node{}, fmt.Errorf("too many links lead to %s: %w", at, unix.ELOOP)
		}
		rest = slices.Concat(strings.Split(n.Link, "/"), rest)
		planted = planted || v.writable(next)
		if path.IsAbs(n.Link) {
			real = "/"
		}
		n = node{Kind: kindDir}
	}
	return real, n, nil
}

// node looks at one path whose directories are no links.
func (v preview) node(at string) (n node, err error) {
	n, known := v.nodes[at]
	if known {
		return n, nil
	}
	covering, target := v.plan.covering(at)
	rest := at[len(strings.TrimSuffix(target, "/")):]
	switch o := covering.(type) {
	case bindOp:
		n, err = onHost(o.Source + rest)
	case overlayOp:
		n, err = v.overlaid(o, at, rest)
	}
	if err != nil {
		return n, err
	}
	if n.Kind == "" && v.leadsToMount(at) {
		n.Kind = kindDir
	}
	v.nodes[at] = n
	return n, nil
}

// leadsToMount reports whether a mount is below a path, which is then made.
func (v preview) leadsToMount(at string) bool {
	return slices.ContainsFunc(v.plan.operations, func(o operation) bool {
		target, mounts := targetOf(o)
		return mounts && within(target, at)
	})
}

// overlaid is what an overlay without changes of the agent's has. That of the root has the
// skeleton above a caller's root.
func (v preview) overlaid(o overlayOp, at, rest string) (node, error) {
	if o.Sources[0] == gitLayer {
		return node{}, nil // texts, and no program
	}
	if o.Target != "/" {
		return onHost(o.Sources[0] + rest)
	}
	switch e := v.entries[at]; {
	case e.Kind == kindLink:
		return node{Kind: kindLink, Link: e.Data}, nil
	case e.Path != "":
		return node{Kind: e.Kind, Host: e.From}, nil
	case v.plan.cfg.Rootfs != "":
		return onHost(o.Sources[1] + rest)
	}
	return node{}, nil
}

// onHost looks at a path of the host, on which no link is followed.
func onHost(at string) (node, error) {
	file, err := openat2(unix.AT_FDCWD, at, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return node{}, nil
	case err != nil:
		return node{}, err
	}
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return node{}, err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return node{Kind: kindDir, Host: at}, nil
	case unix.S_IFREG:
		return node{Kind: kindFile, Host: at}, nil
	case unix.S_IFLNK:
		buffer := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(int(file.Fd()), "", buffer)
		return node{Kind: kindLink, Link: string(buffer[:max(n, 0)])}, err
	}
	return node{}, nil
}

// Open implements linked.Files.
func (v preview) Open(at string) (linked.File, string, error) {
	real, n, err := v.resolve(at)
	if err != nil {
		return nil, real, err
	}
	if n.Kind != kindFile || n.Host == "" { // clove makes the file, or it is none
		return nil, real, linked.ErrNoObject
	}
	file, err := openHost(n.Host)
	return file, real, err
}

// openHost opens a regular file of the host for reading, and follows no link.
func openHost(at string) (*os.File, error) {
	found, err := openSource(at, false)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	return openRead(found)
}

// names lists a directory of the host that appears inside; a path that is none has no names.
func (v preview) names(dir string) (real string, names []string, err error) {
	real, n, err := v.resolve(dir)
	if err != nil || n.Kind != kindDir || n.Host == "" {
		return real, nil, nil
	}
	found, err := openSource(n.Host, true)
	if err != nil {
		return real, nil, err
	}
	defer found.Close()
	file, err := openRead(found)
	if err != nil {
		return real, nil, err
	}
	defer file.Close()
	names, err = file.Readdirnames(directoryMost + 1)
	if len(names) > directoryMost {
		return real, nil, fmt.Errorf("%s has more than %d entries", real, directoryMost)
	}
	slices.Sort(names)
	return real, names, nil
}

// directoryMost bounds the entries of a directory that a list names.
const directoryMost = 10000

// writable reports whether the agent may change what is at a path: neither a link on the way
// nor the agent's rights count, only the mount (mount(2), MS_RDONLY).
func (v preview) writable(at string) bool {
	covering, target := v.plan.covering(at)
	switch o := covering.(type) {
	case bindOp:
		return !o.ReadOnly
	case overlayOp:
		return !v.plan.seals(target)
	case sysOp:
		return false
	}
	return true
}
