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
	if cfg.ReadOnly {
		p.planReadOnly()
	}
	p.add(tableStep{})
	return Plan{cfg: cfg, steps: p.steps}
}

type planner struct {
	cfg    Config
	facts  facts
	steps  []step
	uppers int      // overlays and scratch directories so far
	base   []string // targets of the root's own overlays, which --read-only seals
}

func (p *planner) add(steps ...step) { p.steps = append(p.steps, steps...) }

// overlay plans a writable view of the directories at target, the first of
// them the topmost.
func (p *planner) overlay(target string, m idMap, sources ...string) {
	p.add(overlayStep{Target: target, Sources: sources, Map: m, Index: p.uppers})
	p.uppers++
}

// layer plans the writable layer, with the skeleton in it.
func (p *planner) layer(common, own []entry) {
	p.add(stageStep{},
		layerStep{Image: p.cfg.image(), Template: newTemplate(p.cfg, common)},
		skeletonStep{Entries: own})
}

func (p *planner) planBase() {
	p.layer(skeleton(p.facts), personal(p.cfg, p.facts))
	p.overlay("/", shiftMap(p.cfg.HostID), skeletonDir)
	for _, dir := range p.facts.Base {
		p.overlay(dir, shiftMap(p.cfg.HostID), dir)
	}
	p.base = append([]string{"/"}, p.facts.Base...)
}

// planRootfs makes the directory itself the root. Its owner may be hostile: the
// directories that clove mounts on come from the skeleton above it, whatever
// stands in their place, and everything else is resolved inside.
func (p *planner) planRootfs() {
	p.layer(rootfsSkeleton(), rootfsPersonal(p.cfg))
	p.overlay("/", shiftMap(p.cfg.HostID), skeletonDir, p.facts.Rootfs.Path)
	homeUID, homeGID := agentIDs(p.cfg.AgentUID, p.cfg.AgentGID)
	p.add(makeDirStep{Path: "/var/tmp", Mode: 0o1777},
		makeDirStep{Path: agentHome, Mode: 0o755, UID: homeUID, GID: homeGID})
	p.base = []string{"/"}
}

// planMounts plans everything that the caller asked for, by target: a mount
// never hides one that was asked for below it.
func (p *planner) planMounts() {
	type wanted struct {
		target string
		plan   func()
	}
	var mounts []wanted
	asked := p.asked()
	if !slices.Contains(asked, workspaceDir) {
		switch source := p.facts.Workspace; {
		case source.Path != "":
			mounts = append(mounts, wanted{workspaceDir, func() { p.overlay(workspaceDir, p.ownedBy(source), source.Path) }})
		case p.cfg.ReadOnly:
			mounts = append(mounts, wanted{workspaceDir, func() { p.scratch(workspaceDir) }})
		}
	}
	if p.cfg.ReadOnly {
		for _, dir := range []string{"/tmp", "/var/tmp", agentHome} {
			if !slices.Contains(asked, dir) {
				mounts = append(mounts, wanted{dir, func() { p.scratch(dir) }})
			}
		}
	}
	for _, source := range p.facts.Prefixes {
		mounts = append(mounts, wanted{source.Path, func() {
			p.add(bindStep{Source: source.Path, Target: source.Path, Map: p.ownedBy(source), Dir: true, ReadOnly: true})
		}})
	}
	for i, bind := range p.cfg.Binds {
		source := p.facts.Binds[i]
		mounts = append(mounts, wanted{bind.Target, func() {
			p.add(bindStep{Source: source.Path, Target: bind.Target, Map: p.ownedBy(source), Dir: source.Dir, ReadOnly: bind.ReadOnly, Recursive: true})
		}})
	}
	for _, t := range p.cfg.Tmpfs {
		size := cmp.Or(t.SizeBytes, p.cfg.MemoryBytes/2)
		mounts = append(mounts, wanted{t.Target, func() {
			p.add(tmpfsStep{Target: t.Target, Bytes: size, Mode: cmp.Or(t.Mode, 0o1777)})
		}})
	}
	slices.SortStableFunc(mounts, func(a, b wanted) int { return comparePaths(a.target, b.target) })
	for _, m := range mounts {
		m.plan()
	}
}

// asked are the targets of explicit mounts; they win over clove's own.
func (p *planner) asked() []string {
	var targets []string
	for _, b := range p.cfg.Binds {
		targets = append(targets, b.Target)
	}
	for _, t := range p.cfg.Tmpfs {
		targets = append(targets, t.Target)
	}
	return targets
}

func (p *planner) scratch(target string) {
	p.add(scratchStep{Target: target, Index: p.uppers})
	p.uppers++
}

func (p *planner) ownedBy(s source) idMap {
	return ownerMap(p.cfg.HostID, p.cfg.AgentUID, p.cfg.AgentGID, s.Owner, s.Group)
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
