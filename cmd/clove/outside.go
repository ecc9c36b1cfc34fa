package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// showsFolder is the flag that shows a folder of the host at its own path.
const showsFolder = "-v %[1]s:%[1]s:ro"

// outside is the hint for a command that the sandbox does not have, but this host, as ~/.npm-global/bin/x; empty: it
// is no such command.
func outside(spec agent.Spec, h host.Host) string {
	if spec.Files.Rootfs != "" || len(spec.Command) == 0 {
		return ""
	}
	paths := []string{spec.Command[0]}
	if !strings.Contains(spec.Command[0], "/") {
		list, _ := h.Lookup("PATH")
		paths = filepath.SplitList(list)
		for i, dir := range paths {
			paths[i] = filepath.Join(dir, spec.Command[0])
		}
	}
	at := slices.IndexFunc(paths, func(path string) bool { return filepath.IsAbs(path) && host.IsProgram(path) && !h.InBase(path) })
	if at < 0 {
		return ""
	}
	dir := filepath.Dir(paths[at])
	// What a program in bin needs is often beside bin.
	if up := filepath.Dir(dir); filepath.Base(dir) == "bin" && !slices.Contains(host.SharedDirs, up) {
		dir = up
	}
	return fmt.Sprintf("the agent does not see %[1]s of this host: clove run "+showsFolder+" -- %[2]s", dir, typed(slices.Concat(paths[at:at+1], spec.Command[1:])))
}
