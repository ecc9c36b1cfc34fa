package imports

import (
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// volume is a directory of the host that appears inside.
type volume struct {
	place
	readOnly bool
}

// resolve compares the wishes with what a sandbox shows.
func (r *reader) resolve() {
	if r.system != "" {
		return // a filter of system calls says nothing else
	}
	for _, p := range r.writes {
		r.write(p)
	}
	for _, p := range r.reads {
		r.read(p)
	}
	for _, p := range r.hides {
		r.hide(p)
	}
	for _, p := range r.keeps {
		r.keep(p)
	}
	if len(r.writable) == 0 {
		r.stays("/tmp", "nothing of the host's: a run needs one place to write, and /tmp is its own")
	}
	r.resolveNetwork()
}

// stays adds a place that stays writable, with the settings that want it.
func (p *plan) stays(place, why string) {
	if have := p.writable[place]; have == "" {
		p.writable[place] = why
	} else if have != why {
		p.writable[place] = have + "; " + why
	}
}

func (p *plan) isWritable(place string) bool { return p.writable[place] != "" }

// write makes a place writable: a part of the workspace, of what is the run's own, or a
// directory of the host.
func (r *reader) write(p place) {
	if p.ofWorkspace() {
		if p.path == "." && !p.pattern {
			r.stays(agent.WorkspaceDir, p.setting+": a copy on write, which clove apply brings back")
		} else {
			r.stays(agent.WorkspaceDir, p.setting+": as a whole, but a copy on write, which clove apply brings back")
		}
		return
	}
	if dir := below(p.path, private); dir != "" {
		r.stays(dir, p.setting+": the run's own, not the host's")
		return
	}
	if slices.Contains(devices, p.path) {
		r.note(p.setting, "carried: it can always be written")
		return
	}
	if why := cannotShow(p); why != "" {
		r.refuse(p.setting, "%s", why)
		return
	}
	r.show(volume{place: p})
}

// read shows a place that would not appear.
func (r *reader) read(p place) {
	switch {
	case p.ofWorkspace():
		r.note(p.setting, "carried: the whole workspace appears")
	case p.path == "/":
		r.note(p.setting, "narrowed: the base system and the workspace appear, and nothing else of the host")
	case below(p.path, base) != "":
		r.note(p.setting, "carried: the base system appears")
	case below(p.path, private) != "":
		r.note(p.setting, "narrowed: %s is the run's own, and nothing of the host's is in it", below(p.path, private))
	case host.InKernel(p.path):
		r.note(p.setting, "narrowed: the sandbox has its own")
	case cannotShow(p) != "":
		r.refuse(p.setting, "%s", cannotShow(p))
	default:
		r.show(volume{p, true})
	}
}

// show adds a volume, unless one with the same rights shows the place already. A target is
// there once: the writable one stays.
func (r *reader) show(v volume) {
	if r.mistake != nil {
		return
	}
	for i, have := range r.volumes {
		switch {
		case have.path == v.path && have.inside == v.inside:
			r.volumes[i].readOnly = have.readOnly && v.readOnly
			r.volumes[i].setting += ", " + v.setting
			return
		case host.Within(v.path, have.path) && host.Within(v.inside, have.inside) && (v.readOnly || !have.readOnly):
			r.note(v.setting, "carried: %s shows it", have.setting)
			return
		case have.inside == v.inside:
			r.refuse(v.setting, "%s appears at the same place", have.path)
			return
		}
	}
	if len(r.volumes) == mostVolumes {
		r.mistake = invalid("name a directory that holds several of them", "it names more than %d directories of the host", mostVolumes)
		return
	}
	r.volumes = append(r.volumes, v)
}

// mostVolumes bounds the comparisons of each place with each volume.
const mostVolumes = 256

// hide checks that a place does not appear. A narrower permission opens it again, except where
// a denial is firm.
func (r *reader) hide(p place) {
	if p.ofWorkspace() {
		r.refuse(p.setting, "the workspace appears as a whole: keep such files out of it, or skip the setting and name in files.read what may be read")
		return
	}
	for _, v := range r.volumes {
		inside, around := host.Within(p.path, v.path), host.Within(v.path, p.path)
		opened := around && !p.firm && !p.pattern && (v.readOnly || p.path != v.path)
		if (inside || around) && !opened {
			r.refuse(p.setting, "%s shows it", v.setting)
			return
		}
	}
	switch dir := below(p.path, private); {
	case dir != "":
		r.note(p.setting, "carried: %s is the run's own, and nothing of the host's is in it", dir)
	case host.InKernel(p.path):
		r.refuse(p.setting, "the sandbox has its own /proc, /sys and /dev, and they are readable")
	case shows(p.path) != "":
		r.refuse(p.setting, "%s of the base system appears inside", shows(p.path))
	case slices.Contains(secrets, p.path):
		r.note(p.setting, "carried: the host's does not appear")
	default:
		r.note(p.setting, "carried: %s does not appear inside", p.path)
	}
}

// keep checks that a place cannot be written.
func (r *reader) keep(p place) {
	if p.ofWorkspace() {
		if r.isWritable(agent.WorkspaceDir) {
			r.refuse(p.setting, "the workspace is writable as a whole; it is a copy, and clove apply shows each change")
			return
		}
		r.note(p.setting, "carried: the workspace is read-only")
		return
	}
	for _, v := range r.volumes {
		if !v.readOnly && (p.within(v.place) || v.within(p)) {
			r.refuse(p.setting, "%s makes it writable", v.setting)
			return
		}
	}
	for _, dir := range private {
		if r.isWritable(dir) && (host.Within(p.path, dir) || host.Within(dir, p.path)) {
			r.note(p.setting, "carried: the host's %s does not appear; the run has its own", dir)
			return
		}
	}
	r.note(p.setting, "carried: nothing of the host can be written but what volumes name")
}
