package runtime

import (
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
)

// commandOf is how clove-init will look up the agent's program.
func commandOf(spec agent.Spec) rootfs.Command {
	c := rootfs.Command{Dir: spec.Dir}
	if len(spec.Command) > 0 {
		c.Name = spec.Command[0]
	}
	for _, entry := range spec.Env {
		if value, is := strings.CutPrefix(entry, "PATH="); is && c.Path == nil {
			for dir := range strings.SplitSeq(value, ":") {
				if dir == "" {
					dir = spec.Dir
				}
				c.Path = append(c.Path, dir)
			}
		}
	}
	return c
}
