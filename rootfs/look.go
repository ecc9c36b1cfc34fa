package rootfs

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Sight is what an agent finds at one path of its root when it starts.
type Sight struct {
	// Readable: the path is of a part of the host that appears inside, or in a place of the
	// agent's own. Whether something exists there is not known.
	Readable bool
	Writable bool   // the agent's user may change it, or make it
	By       string // what decides, in words
}

// mostLinks bounds the links of the skeleton that Look follows.
const mostLinks = 8

// Look says what an agent with this configuration finds at a clean absolute path. It asks
// the plan by which the root is built, and looks at nothing of the host: neither whether a
// file exists, nor its owner. The base system counts as root's, so that only root may change it.
// /proc and /dev are not part of the plan; in /sys the rest of what is mounted there is not.
func (c Config) Look(at string) (Sight, error) {
	if err := c.check(); err != nil {
		return Sight{}, err
	}
	if !isCleanAbsolute(at) {
		return Sight{}, fmt.Errorf("cannot look at %q: not a clean absolute path", at)
	}
	f := c.usualHost()
	l := looker{cfg: c, plan: planFor(c, f), entries: map[string]entry{}}
	common, own := f.skeleton(), personal(c, f)
	if c.Rootfs != "" {
		common, own = rootfsSkeleton(), rootfsPersonal(c)
	}
	for _, e := range slices.Concat(common, own) {
		l.entries[e.Path] = e
	}
	return l.look(l.resolved(at)), nil
}

// usualHost is a host with every directory of the base system, and with every source that
// the configuration names.
func (c Config) usualHost() hostInfo {
	f := hostInfo{Base: slices.Sorted(slices.Values(slices.Concat(baseDirs, mergeDirs)))}
	if c.Rootfs != "" {
		f.Rootfs = source{Path: c.Rootfs, Dir: true}
	}
	if c.Workspace != "" {
		f.Workspace = source{Path: c.Workspace, Dir: true}
	}
	for _, bind := range c.Binds {
		f.Binds = append(f.Binds, source{Path: bind.Source, Dir: true})
	}
	for _, prefix := range c.Prefixes {
		if !inBase(prefix) || c.Rootfs != "" {
			f.Prefixes = append(f.Prefixes, source{Path: prefix, Dir: true})
		}
	}
	return f
}

// looker answers for one configuration.
type looker struct {
	cfg     Config
	plan    Plan
	entries map[string]entry // of the skeleton, by path
}

// resolved follows the links that clove itself makes: /var/run is /run.
func (l looker) resolved(at string) string {
	for range mostLinks {
		link, rest := "", ""
		for up := at; up != "/"; up = path.Dir(up) {
			if l.entries[up].Kind == kindLink {
				link, rest = up, at[len(up):]
			}
		}
		if link == "" {
			break
		}
		to := l.entries[link].Data
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(link), to)
		}
		at = path.Clean(to + rest)
	}
	return at
}

// covering finds the innermost mount with the path in it. Mounts are planned parents first.
func (p Plan) covering(at string) (covering operation, target string) {
	for _, o := range p.operations {
		if to, mounts := targetOf(o); mounts && within(at, to) && len(to) >= len(target) {
			covering, target = o, to
		}
	}
	return covering, target
}

// seals reports whether the overlay at target becomes read-only.
func (p Plan) seals(target string) bool {
	return slices.ContainsFunc(p.operations, func(o operation) bool { return o == operation(sealOp{Target: target}) })
}

// look says what the innermost mount shows.
func (l looker) look(at string) Sight {
	covering, target := l.plan.covering(at)
	sealed := l.plan.seals(target)
	switch o := covering.(type) {
	case bindOp:
		return bound(o)
	case tmpfsOp:
		return Sight{true, l.permits(entry{Mode: o.Mode}, 0o222), "a file system in memory at " + target}
	case scratchOp:
		return Sight{true, true, target + ", which stays writable"}
	case keptDirOp:
		return Sight{true, true, o.String()}
	case sysOp:
		return sysSight(at)
	case overlayOp:
		if target == "/" {
			return l.skeletal(at, sealed)
		}
		return l.overlaid(target, sealed)
	}
	return Sight{By: "nothing is there"}
}

// targetOf is the mount point of an operation that mounts something for the agent.
func targetOf(o operation) (target string, mounts bool) {
	switch o := o.(type) {
	case overlayOp:
		return o.Target, true
	case bindOp:
		return o.Target, true
	case tmpfsOp:
		return o.Target, true
	case scratchOp:
		return o.Target, true
	case keptDirOp:
		return o.Target, true
	case sysOp:
		return "/sys", true
	}
	return "", false
}

func bound(o bindOp) Sight {
	if o.ReadOnly {
		return Sight{true, false, o.Source + " at " + o.Target + ", read-only"}
	}
	return Sight{true, true, "the host's own " + o.Source + " at " + o.Target}
}

// sysSight knows what sysOp shows.
func sysSight(at string) Sight {
	for _, dir := range sysDirs {
		if within(at, dir) || within(dir, at) {
			return Sight{Readable: true, By: "what /sys says of processors, read-only"}
		}
	}
	return Sight{By: "the rest of /sys does not appear"}
}

// overlaid is a copy of a directory of the host, in which the agent writes into its layer.
func (l looker) overlaid(target string, sealed bool) Sight {
	s := Sight{Readable: true, By: "the host's base system, " + target}
	switch {
	case target == workspaceDir:
		s.By, s.Writable = "a copy of the workspace", true
	case slices.ContainsFunc(l.cfg.Binds, func(b Bind) bool { return b.CopyOnWrite && b.Target == target }):
		s.By, s.Writable = "a copy of the caller's folder, "+target, true
	}
	return l.sealed(s, s.Writable || l.cfg.AgentUID == 0, sealed)
}

// sealed completes a sight with what a read-only root and the agent's user allow.
func (l looker) sealed(s Sight, may, sealed bool) Sight {
	switch {
	case sealed:
		s.Writable = false
		s.By += ", under a read-only root"
	case !may && s.Readable:
		s.By += fmt.Sprintf(", which root changes, not user %d", l.cfg.AgentUID)
	}
	s.Writable = may && !sealed
	return s
}

// skeletal is a path of the root itself: what clove makes, what it copies from /etc, and
// nothing else of the host; or a root of the caller's own.
func (l looker) skeletal(at string, sealed bool) Sight {
	nearest := at
	for l.entries[nearest].Path == "" {
		nearest = path.Dir(nearest)
	}
	e := l.entries[nearest]
	for up := path.Dir(nearest); nearest != "/"; up = path.Dir(up) {
		if !l.permits(l.entries[up], 0o111) {
			return Sight{By: fmt.Sprintf("%s belongs to root alone", up)}
		}
		if up == "/" {
			break
		}
	}
	writes := l.permits(e, 0o222) && (e.Kind == kindDir || nearest == at)
	own := e.Mode&0o002 != 0 || nearest == agentHome || nearest == workspaceDir
	switch rest, ofEtc := strings.CutPrefix(at, "/etc/"); {
	case nearest == at:
		by := "made by clove"
		switch {
		case own:
			by = at + ", the agent's own"
		case !l.permits(e, 0o444):
			by += ", for root inside alone"
		}
		return l.sealed(Sight{Readable: l.permits(e, 0o444), By: by}, writes, sealed)
	case own:
		return l.sealed(Sight{Readable: true, By: nearest + ", the agent's own"}, writes, sealed)
	case l.cfg.Rootfs != "":
		return l.callers(at, sealed)
	case ofEtc && copied(rest):
		return l.sealed(Sight{Readable: true, By: "a copy of the host's " + at + ", if every user may read it"}, l.cfg.AgentUID == 0, sealed)
	}
	s := l.sealed(Sight{By: "nothing of the host appears there"}, writes, sealed)
	if s.Writable {
		s.By += "; user 0 may make it in the agent's layer"
	}
	return s
}

// callers is a path of a root of the caller's own.
func (l looker) callers(at string, sealed bool) Sight {
	for _, o := range l.plan.operations {
		if made, ok := o.(makeDirOp); ok && within(at, made.Path) {
			return l.sealed(Sight{Readable: true, By: made.Path + ", the agent's own"}, true, sealed)
		}
	}
	return l.sealed(Sight{Readable: true, By: "the root " + l.cfg.Rootfs}, l.cfg.AgentUID == 0, sealed)
}

// permits reports whether the agent has one of the permissions of a mode, such as 0o222.
// Root passes all.
func (l looker) permits(e entry, permission uint32) bool {
	switch {
	case l.cfg.AgentUID == 0:
		return true
	case e.UID == l.cfg.AgentUID:
		return e.Mode&permission&0o700 != 0
	case e.GID == l.cfg.AgentGID:
		return e.Mode&permission&0o070 != 0
	}
	return e.Mode&permission&0o007 != 0
}

// copied reports whether a path below /etc is one that readEtc copies, or a directory on the
// way to one.
func copied(rest string) bool {
	parts := strings.Split(rest, "/")
	return slices.ContainsFunc(etcNames, func(pattern string) bool {
		wanted := strings.Split(pattern, "/")
		for i := range min(len(parts), len(wanted)) {
			if match, _ := path.Match(wanted[i], parts[i]); !match { // the patterns are sound
				return false
			}
		}
		return true
	})
}
