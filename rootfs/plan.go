package rootfs

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Plan is how a root will be built: steps in their order, with nothing left to
// decide. It is a value; String is its stable text.
type Plan struct {
	cfg   Config
	facts facts // what the steps were planned from
	steps []step
	fault func(k int) error // tests only: fails step k before it runs
}

// step is one thing that Mount does. Its text names it in the plan and in errors.
type step interface {
	String() string
	run(b *builder) error
}

// NewPlan validates cfg against this host and plans its root. It changes nothing.
func NewPlan(cfg Config) (Plan, error) {
	if err := cfg.check(); err != nil {
		return Plan{}, err
	}
	f, err := readFacts(cfg)
	if err != nil {
		return Plan{}, err
	}
	return planFor(cfg, f), nil
}

// OnIDs is the same plan for another range of host ids, without a second look
// at the host: the range is leased after everything else was found right.
func (p Plan) OnIDs(hostID uint32) (Plan, error) {
	cfg := p.cfg
	cfg.HostID = hostID
	if err := cfg.check(); err != nil {
		return Plan{}, err
	}
	return planFor(cfg, p.facts), nil
}

func (p Plan) String() string {
	var out strings.Builder
	for _, s := range p.steps {
		out.WriteString(s.String() + "\n")
	}
	return out.String()
}

// planFor is the pure part of NewPlan.
func planFor(cfg Config, f facts) Plan {
	p := &planner{cfg: cfg, facts: f}
	if cfg.Rootfs != "" {
		p.planRootfs()
	} else {
		p.planBase()
	}
	p.planMounts()
	p.add(sysStep{})
	if f.Veiled {
		p.add(procStep{})
	}
	if cfg.ReadOnly {
		p.planReadOnly()
	}
	p.add(tableStep{})
	return Plan{cfg: cfg, facts: p.facts, steps: p.steps}
}

type planner struct {
	cfg    Config
	facts  facts
	steps  []step
	uppers int      // overlays and scratch directories so far
	base   []string // targets of the root's own overlays, which --read-only seals
}

func (p *planner) add(steps ...step) { p.steps = append(p.steps, steps...) }

// overlay plans s as the next one.
func (p *planner) overlay(s overlayStep) {
	s.Index = p.uppers
	p.add(s)
	p.uppers++
}

// layer plans the writable layer, with the skeleton in it.
func (p *planner) layer(kind string, common func() []entry, own []entry) {
	if p.cfg.kept {
		p.add(stageStep{}, keptStep{Image: p.cfg.image()}, skeletonStep{Entries: own})
		return
	}
	if p.facts.layer == nil {
		planned := newTemplate(p.cfg, kind, common())
		p.facts.layer = &planned
	}
	p.add(stageStep{},
		layerStep{Image: p.cfg.image(), Template: *p.facts.layer},
		skeletonStep{Entries: own})
}

func (p *planner) planBase() {
	p.layer(templateBase, p.facts.skeleton, personal(p.cfg, p.facts))
	p.overlay(overlayStep{Target: "/", Sources: []string{skeletonDir}, Map: shiftMap(p.cfg.HostID)})
	without := asIs
	if p.cfg.AgentUID == 0 {
		without = byCopy // root inside must own the base to install into it
	}
	for _, dir := range p.facts.Base {
		p.overlay(overlayStep{Target: dir, Sources: []string{dir}, Map: shiftMap(p.cfg.HostID), Else: without})
	}
	p.base = append([]string{"/"}, p.facts.Base...)
}

// planRootfs makes the directory itself the root. Its owner may be hostile: the
// directories that clove mounts on come from the skeleton above it, whatever
// stands in their place, and everything else is resolved inside.
func (p *planner) planRootfs() {
	p.layer(templateRootfs, rootfsSkeleton, rootfsPersonal(p.cfg))
	p.overlay(overlayStep{Target: "/", Sources: []string{skeletonDir, p.facts.Rootfs.Path}, Map: shiftMap(p.cfg.HostID)})
	homeUID, homeGID := agentIDs(p.cfg.AgentUID, p.cfg.AgentGID)
	p.add(makeDirStep{Path: "/var/tmp", Mode: 0o1777},
		makeDirStep{Path: agentHome, Mode: 0o755, UID: homeUID, GID: homeGID})
	p.base = []string{"/"}
}

// wanted is a mount that is not planned yet.
type wanted struct {
	target string
	plan   func()
}

// planMounts plans everything that the caller asked for, and what --read-only
// leaves writable, by target: no mount hides one that was asked for below it.
func (p *planner) planMounts() {
	asked := p.asked()
	var mounts []wanted
	for _, own := range append(p.own(), p.prefixes()...) {
		// The caller's explicit mounts win over clove's own.
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

// own are the workspace and the directories that stay writable.
func (p *planner) own() []wanted {
	var mounts []wanted
	source := p.facts.Workspace
	if source.Path != "" {
		mounts = append(mounts, wanted{workspaceDir, func() {
			p.overlay(overlayStep{Target: workspaceDir, Sources: []string{source.Path}, Map: p.callersMap(source), Else: byCopy, As: p.cfg.User})
		}})
	}
	if !p.cfg.ReadOnly {
		return mounts
	}
	for _, dir := range []string{"/tmp", "/var/tmp", agentHome, workspaceDir} {
		if dir != workspaceDir || source.Path == "" {
			mounts = append(mounts, wanted{dir, func() { p.scratch(dir) }})
		}
	}
	return mounts
}

func (p *planner) prefixes() []wanted {
	var mounts []wanted
	for _, source := range p.facts.Prefixes {
		mounts = append(mounts, wanted{source.Path, func() {
			p.add(bindStep{Source: source.Path, Target: source.Path, Map: p.ownedBy(source), Dir: true, ReadOnly: true})
		}})
	}
	return mounts
}

// asked are the explicit mounts.
func (p *planner) asked() []wanted {
	var mounts []wanted
	for i, bind := range p.cfg.Binds {
		source := p.facts.Binds[i]
		mounts = append(mounts, wanted{bind.Target, func() {
			p.add(bindStep{Source: source.Path, Target: bind.Target, Map: p.callersMap(source), Dir: source.Dir, ReadOnly: bind.ReadOnly, Recursive: true, As: p.cfg.User})
		}})
	}
	for _, t := range p.cfg.Tmpfs {
		mounts = append(mounts, wanted{t.Target, func() {
			p.add(tmpfsStep{Target: t.Target, Bytes: cmp.Or(t.SizeBytes, p.cfg.MemoryBytes/2), Mode: cmp.Or(t.Mode, 0o1777)})
		}})
	}
	return mounts
}

func (p *planner) scratch(target string) {
	p.add(scratchStep{Target: target, Index: p.uppers})
	p.uppers++
}

func (p *planner) ownedBy(s source) idMap {
	return ownerMap(p.cfg.HostID, p.cfg.AgentUID, p.cfg.AgentGID, s.Owner, s.Group)
}

// callersMap gives the agent what is the user's, where one named it, and the
// rest to nobody: not even root inside has a right over what is not mapped, and
// nobody at all makes a file that would be another's.
func (p *planner) callersMap(s source) idMap {
	user := p.cfg.User
	if user == nil {
		return p.ownedBy(s)
	}
	return idMap{UID: []extent{{user.UID, p.cfg.HostID + p.cfg.AgentUID, 1}}, GID: []extent{{user.GID, p.cfg.HostID + p.cfg.AgentGID, 1}}}
}

func (p *planner) planReadOnly() {
	for _, target := range slices.Backward(p.base) {
		p.add(sealStep{Target: target})
	}
}

// comparePaths orders a directory before what lies in it.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(path.Clean(a), "/"), strings.Split(path.Clean(b), "/"))
}
