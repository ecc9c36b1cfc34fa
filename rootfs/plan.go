package rootfs

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Plan is how a root will be built: operations in their order, with no decision left. It is
// a value; String is its stable text.
type Plan struct {
	cfg        Config
	hostInfo   hostInfo // the input of the planning
	operations []operation
	fault      func(k int) error // for tests only: fails operation k before it runs
}

// operation is one part of Mount. Its text names it in the plan and in errors.
type operation interface {
	String() string
	run(b *builder) error
}

// NewPlan validates cfg against this host and plans its root. It changes nothing.
func NewPlan(cfg Config) (Plan, error) {
	if err := cfg.check(); err != nil {
		return Plan{}, err
	}
	f, err := readHostInfo(cfg)
	if err != nil {
		return Plan{}, err
	}
	p := planFor(cfg, f)
	if cfg.Execute == nil {
		return p, nil
	}
	if f.Execute, err = p.executables(); err != nil {
		return Plan{}, err
	}
	return planFor(cfg, f), nil
}

// OnIDs is the same plan for another range of host ids. It does not read the host again:
// the range is leased last, when everything else has been checked.
func (p Plan) OnIDs(hostID uint32) (Plan, error) {
	cfg := p.cfg
	cfg.HostID = hostID
	if err := cfg.check(); err != nil {
		return Plan{}, err
	}
	return planFor(cfg, p.hostInfo), nil
}

func (p Plan) String() string {
	var out strings.Builder
	for _, s := range p.operations {
		out.WriteString(s.String() + "\n")
	}
	return out.String()
}

// planFor is the part of NewPlan without side effects.
func planFor(cfg Config, f hostInfo) Plan {
	p := &planner{cfg: cfg, hostInfo: f}
	if cfg.Rootfs != "" {
		p.planRootfs()
	} else {
		p.planBase()
	}
	p.planMounts()
	if cfg.Authority {
		p.add(authorityOp{cfg.Services}) // over what the mounts show
	}
	p.add(sysOp{})
	if f.Veiled {
		p.add(procOp{})
	}
	// After all mounts: their mount points must still be made in the overlays that are
	// sealed.
	if cfg.ReadOnly {
		p.planReadOnly()
	}
	// Behind everything else, because it changes every mount that is there by now.
	if f.Execute != nil {
		p.add(noexecOp{})
		for _, e := range f.Execute {
			p.add(e)
		}
	}
	p.add(tableOp{})
	return Plan{cfg: cfg, hostInfo: p.hostInfo, operations: p.operations}
}

// planner collects the operations of one plan.
type planner struct {
	cfg        Config
	hostInfo   hostInfo
	operations []operation
	uppers     int      // overlays and scratch directories so far
	base       []string // targets of the overlays that --read-only makes read-only
}

func (p *planner) add(operations ...operation) { p.operations = append(p.operations, operations...) }

// overlay plans s with the next index.
func (p *planner) overlay(s overlayOp) {
	s.Index, s.from = p.uppers, "layer"
	p.add(s)
	p.uppers++
}

// layer plans the writable layer with its skeleton.
func (p *planner) layer(kind string, common func() []entry, own []entry) {
	if p.cfg.kept {
		p.add(stageOp{})
		if p.cfg.seed != "" {
			p.add(seedOp{Image: p.cfg.image(), From: p.cfg.seed, Bytes: p.cfg.DiskBytes})
		}
		p.add(keptOp{Image: p.cfg.image()}, skeletonOp{Entries: own})
		return
	}
	// The skeleton is hashed once: planning runs again when the ids are known, and the
	// template does not depend on them.
	if p.hostInfo.layer == nil {
		planned := newTemplate(p.cfg, kind, common())
		p.hostInfo.layer = &planned
	}
	p.add(stageOp{},
		layerOp{Image: p.cfg.image(), Template: *p.hostInfo.layer},
		skeletonOp{Entries: own})
}

// planBase plans the root over the host's base. The base directories follow parents first,
// because each is mounted inside of the one before.
func (p *planner) planBase() {
	p.layer(templateBase, p.hostInfo.skeleton, personal(p.cfg, p.hostInfo))
	p.overlay(overlayOp{Target: "/", Sources: []string{skeletonDir}, Map: shiftMap(p.cfg.HostID)})
	without := asIs
	if p.cfg.AgentUID == 0 {
		without = byCopy // the sandbox's root installs packages into the base, so it must own the files
	}
	for _, dir := range p.hostInfo.Base {
		p.overlay(overlayOp{Target: dir, Sources: []string{dir}, Map: shiftMap(p.cfg.HostID), Else: without})
	}
	p.base = append([]string{"/"}, p.hostInfo.Base...)
}

// planRootfs makes a caller's directory the root. Its owner may be hostile. The directories
// that clove mounts on come from the skeleton above it, whatever the directory has in their
// place, and everything else is resolved inside.
func (p *planner) planRootfs() {
	p.layer(templateRootfs, rootfsSkeleton, rootfsPersonal(p.cfg))
	p.overlay(overlayOp{Target: "/", Sources: []string{skeletonDir, p.hostInfo.Rootfs.Path}, Map: shiftMap(p.cfg.HostID)})
	homeUID, homeGID := agentIDs(p.cfg.AgentUID, p.cfg.AgentGID)
	p.add(makeDirOp{Path: "/var/tmp", Mode: 0o1777},
		makeDirOp{Path: agentHome, Mode: 0o755, UID: homeUID, GID: homeGID})
	p.base = []string{"/"}
}

// wanted is a mount that is not planned yet.
type wanted struct {
	target string
	plan   func()
}

// planMounts plans everything that the caller requested, and what --read-only leaves
// writable, sorted by target, so that no mount hides one below it.
func (p *planner) planMounts() {
	if p.cfg.Home != "" {
		p.add(homeOp{p.hostInfo.Home, p.cfg.Keep, p.cfg.homeMap()})
	}
	asked := p.asked()
	var mounts []wanted
	for _, own := range append(p.own(), p.prefixes()...) {
		// A mount that the caller requested replaces clove's own at the same target.
		if !slices.ContainsFunc(asked, func(a wanted) bool { return a.target == own.target }) {
			mounts = append(mounts, own)
		}
	}
	mounts = append(mounts, asked...)
	slices.SortStableFunc(mounts, func(a, b wanted) int { return comparePaths(a.target, b.target) })
	for _, m := range mounts {
		m.plan()
	}
}

// own are the workspace with its repository, the directory of the agent's socket, and the directories that stay
// writable.
func (p *planner) own() []wanted {
	var mounts []wanted
	source := p.hostInfo.Workspace
	if source.Path != "" {
		mounts = append(mounts, wanted{workspaceDir, func() {
			p.overlay(overlayOp{Target: workspaceDir, Sources: []string{source.Path}, Map: p.callersMap(source), Else: byCopy, As: p.cfg.User})
			if !p.cfg.staysWritable(workspaceDir) {
				p.base = append(p.base, workspaceDir)
			}
		}})
	}
	mounts = append(mounts, p.planRepository()...)
	if p.cfg.Services != "" {
		mounts = append(mounts, wanted{ServicesDir, func() {
			// Not id-mapped: the socket is root's, and every process that reaches it may connect.
			p.add(bindOp{Source: p.cfg.Services, Target: ServicesDir, Dir: true, ReadOnly: true})
		}})
	}
	if p.cfg.shown.target != "" {
		mounts = append(mounts, wanted{p.cfg.shown.target, func() { p.add(shownOp{p.cfg.shown, shiftMap(p.cfg.HostID)}) }})
	}
	if p.cfg.Home != "" {
		mounts = append(mounts, p.kept(agentHome, homeInImage))
		for _, folder := range p.cfg.Keep {
			mounts = append(mounts, p.kept(folder, folderInImage(folder)))
		}
	}
	if !p.cfg.ReadOnly {
		return mounts
	}
	for _, dir := range []string{"/tmp", "/var/tmp", agentHome, workspaceDir} {
		if dir == agentHome && p.cfg.Home != "" {
			continue
		}
		if p.cfg.staysWritable(dir) && (dir != workspaceDir || source.Path == "") {
			mounts = append(mounts, wanted{dir, func() { p.scratch(dir) }})
		}
	}
	return mounts
}

// kept is a directory of the kept home's image.
func (p *planner) kept(target, dir string) wanted {
	return wanted{target, func() { p.add(keptDirOp{Target: target, Dir: dir, Home: p.cfg.Home}) }}
}

// prefixes are read-only: several agents and the host share an interpreter.
func (p *planner) prefixes() []wanted {
	var mounts []wanted
	for _, source := range p.hostInfo.Prefixes {
		mounts = append(mounts, wanted{source.Path, func() {
			p.add(bindOp{Source: source.Path, Target: source.Path, Map: p.ownedBy(source), Dir: true, ReadOnly: true})
		}})
	}
	return mounts
}

// asked are the mounts that the caller requested.
func (p *planner) asked() []wanted {
	var mounts []wanted
	for i, bind := range p.cfg.Binds {
		source := p.hostInfo.Binds[i]
		mounts = append(mounts, wanted{bind.Target, func() {
			if bind.CopyOnWrite && p.cfg.writableAt(bind.Target) {
				p.copied(bind.Target, source)
				return
			}
			p.add(bindOp{Source: source.Path, Target: bind.Target, Map: p.callersMap(source), Dir: source.Dir, ReadOnly: bind.ReadOnly, Recursive: !bind.CopyOnWrite, As: p.cfg.User})
		}})
	}
	for _, t := range p.cfg.Tmpfs {
		mounts = append(mounts, wanted{t.Target, func() {
			// Half of the memory is the kernel's default too, of the machine's (tmpfs(5)).
			p.add(tmpfsOp{Target: t.Target, Bytes: cmp.Or(t.SizeBytes, p.cfg.MemoryBytes/2), Mode: cmp.Or(t.Mode, 0o1777), NoSwap: t.NoSwap})
		}})
	}
	return mounts
}

// copied plans an overlay over a directory of the caller's. The directories on the way to it are the
// agent's where the home is.
func (p *planner) copied(target string, s source) {
	uid, gid := agentIDs(p.cfg.AgentUID, p.cfg.AgentGID)
	for end := range target {
		if at := target[:end]; target[end] == '/' && at != agentHome && within(at, agentHome) {
			p.add(makeDirOp{Path: at, Mode: 0o755, UID: uid, GID: gid})
		}
	}
	p.overlay(overlayOp{Target: target, Sources: []string{s.Path}, Map: p.callersMap(s), Else: byCopy, As: p.cfg.User})
}

// scratch takes a number like an overlay, because it has a directory among the uppers too.
func (p *planner) scratch(target string) {
	p.add(scratchOp{Target: target, Index: p.uppers, Direct: len(p.cfg.Writable) > 0})
	p.uppers++
}

func (p *planner) ownedBy(s source) idMap {
	return ownerMap(p.cfg.HostID, p.cfg.AgentUID, p.cfg.AgentGID, s.Owner, s.Group)
}

// callersMap maps only the user's own id, to the agent, if a user requested the mount.
// Other owners are unmapped: not even root inside has rights over them, and no file can be
// made that would belong to another user.
func (p *planner) callersMap(s source) idMap {
	user := p.cfg.User
	if user == nil {
		return p.ownedBy(s)
	}
	return idMap{UID: []extent{{user.UID, p.cfg.HostID + p.cfg.AgentUID, 1}}, GID: []extent{{user.GID, p.cfg.HostID + p.cfg.AgentGID, 1}}}
}

// planReadOnly leaves out an overlay that a requested mount covers: the mount would be
// sealed in its place, and it is as requested.
func (p *planner) planReadOnly() {
	asked := p.asked()
	for _, target := range slices.Backward(p.base) {
		if !slices.ContainsFunc(asked, func(a wanted) bool { return within(target, a.target) }) {
			p.add(sealOp{Target: target})
		}
	}
}

// comparePaths orders a directory before its entries.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(path.Clean(a), "/"), strings.Split(path.Clean(b), "/"))
}
