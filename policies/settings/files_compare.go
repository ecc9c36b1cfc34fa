package settings

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// writeVolumes leaves out what a text cannot name: see Unwritten.
func writeVolumes(s agent.Spec) (volumes []string) {
	for _, b := range s.Files.Binds {
		if unwritten(b) || b.CopyOnWrite {
			continue
		}
		volume := b.Source + ":" + b.Target
		if b.ReadOnly {
			volume += ":ro"
		}
		volumes = append(volumes, volume)
	}
	return volumes
}

func unwritten(b agent.Bind) bool { return strings.Contains(b.Source+b.Target, ":") }

// Unwritten are reasons why a part of a spec is missing in what Given returns.
func Unwritten(s agent.Spec) (left []string) {
	for _, b := range s.Files.Binds {
		if unwritten(b) {
			left = append(left, fmt.Sprintf("%s is shown inside and is not in the document, because of a colon in its path", b.Target))
		}
	}
	return left
}

func widerVolumes(base, wide agent.Spec) []Difference {
	var binds []string
	for _, bind := range wide.Files.Binds {
		if !bind.CopyOnWrite && !slices.ContainsFunc(base.Files.Binds, func(have agent.Bind) bool {
			return have.Source == bind.Source && have.Target == bind.Target && (bind.ReadOnly || !have.ReadOnly)
		}) {
			mode := "rw"
			if bind.ReadOnly {
				mode = "ro"
			}
			binds = append(binds, bind.Source+":"+bind.Target+":"+mode)
		}
	}
	return more(len(binds) > 0, "nothing of them", list(binds))
}

func writeTmpfs(s agent.Spec) (mounts []string) {
	for _, t := range s.Files.Tmpfs {
		var options []string
		if t.SizeBytes > 0 {
			options = append(options, "size="+writeSize(t.SizeBytes))
		}
		if t.Mode > 0 {
			options = append(options, fmt.Sprintf("mode=%o", t.Mode))
		}
		mount := t.Target
		if len(options) > 0 {
			mount += ":" + strings.Join(options, ",")
		}
		mounts = append(mounts, mount)
	}
	return mounts
}

// widerTmpfs: on a read-only root it is one more place that can be written.
func widerTmpfs(base, wide agent.Spec) []Difference {
	if !base.Files.ReadOnly {
		return nil
	}
	return beyond(targetsOf(base.Files.Tmpfs), targetsOf(wide.Files.Tmpfs), slices.Contains)
}

func targetsOf(all []agent.Tmpfs) (targets []string) {
	for _, t := range all {
		targets = append(targets, t.Target)
	}
	return targets
}

func widerRootfs(base, wide agent.Spec) []Difference {
	const host = "the host's base system"
	b, w := cmp.Or(base.Files.Rootfs, host), cmp.Or(wide.Files.Rootfs, host)
	return more(b != w, b, w)
}

// widerExecute compares entries as they are written. A path that a pattern of base matches, or
// that is the same, leads to the same program in both.
func widerExecute(base, wide agent.Spec) []Difference {
	b, w := base.Files.Execute, wide.Files.Execute
	if b == nil || w == nil {
		return more(b != nil, list(b), "any program")
	}
	return beyond(b, w, func(base []string, entry string) bool {
		return slices.ContainsFunc(base, func(have string) bool {
			match, _ := path.Match(have, entry) // an entry that is no pattern matches itself only
			return have == entry || match && !strings.ContainsAny(entry, `*?[\`)
		})
	})
}

// widerRead compares entries as they are written: one that lies in an entry of base, or in a
// place of the agent's own, shows no more.
func widerRead(base, wide agent.Spec) []Difference {
	b, w := base.Files.Read, wide.Files.Read
	if b == nil || w == nil {
		return more(b != nil, list(b), "all that appears inside")
	}
	return beyond(b, w, func(_ []string, entry string) bool { return base.Files.MayRead(entry) })
}

// writable are the places outside of the root's base that can be written.
func writable(f agent.Files) []string {
	if f.ReadOnly && f.Writable != nil {
		return f.Writable
	}
	return agent.WritablePlaces
}
