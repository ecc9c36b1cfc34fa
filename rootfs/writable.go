package rootfs

import "slices"

// Writable lists the places outside of which an agent with this configuration changes
// nothing, whatever the permissions of files say. A read-only place inside of one stays so by
// its mount. /proc and /dev are not part of the plan.
func (p Plan) Writable() []string {
	sealed := func(target string) bool { return slices.Contains(p.operations, operation(sealOp{Target: target})) }
	// Root, and a user who knows the directory that replaces the base, can have made a place
	// anywhere.
	if !sealed("/") && (p.cfg.AgentUID == 0 || p.cfg.Rootfs != "") {
		return []string{"/"}
	}
	var places []string
	for _, o := range p.operations {
		if target, mounts := targetOf(o); mounts && target != "/" && !sealed(target) && !isReadOnly(o) {
			places = append(places, target)
		}
	}
	if !sealed("/") {
		places = append(places, p.permitted()...)
	}
	return outermost(places)
}

// outermost leaves out what is inside of another place.
func outermost(places []string) []string {
	slices.SortFunc(places, comparePaths)
	var kept []string
	for _, place := range places {
		if len(kept) == 0 || !within(place, kept[len(kept)-1]) {
			kept = append(kept, place)
		}
	}
	return kept
}

// isReadOnly reports whether what an operation mounts is read-only from the beginning.
func isReadOnly(o operation) bool {
	switch o := o.(type) {
	case bindOp:
		return o.ReadOnly
	case sysOp:
		return true
	}
	return false
}

// permitted are the names of the skeleton that a user other than root may change.
func (p Plan) permitted() []string {
	var paths []string
	for _, e := range slices.Concat(p.hostInfo.skeleton(), personal(p.cfg, p.hostInfo)) {
		if e.Kind != kindLink && (e.UID != 0 || e.Mode&0o022 != 0) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}
