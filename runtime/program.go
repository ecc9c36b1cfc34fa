package runtime

import (
	"os"
	"path/filepath"
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

// findInit looks for clove-init beside clove itself, then where packages put it.
func findInit() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", agent.Failed("find clove-init", err)
	}
	for _, path := range []string{filepath.Join(filepath.Dir(self), "clove-init"), "/usr/libexec/clove/clove-init"} {
		if isProgram(path) {
			return path, nil
		}
	}
	return "", &agent.Error{Kind: agent.KindNotFound, Step: "find clove-init",
		Message: "clove-init is not beside " + self, Hint: "build both with `make build`, or install both in one directory"}
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Programs is the directory of the programs that clove starts.
func Programs() (string, error) {
	executable, err := findInit()
	return filepath.Dir(executable), err
}

// besideInit is another of clove's programs; they are installed together.
func besideInit(init, name string) string { return filepath.Join(filepath.Dir(init), name) }
