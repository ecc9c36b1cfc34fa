package main

import (
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/homedir"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/interpreter"
	"clove.run/clove/policies/settings"
)

// reportHomeTools names the flag that shows a program which the command names, and which a shell
// inside has not found.
func reportHomeTools(s *screen, spec agent.Spec, h host.Host) {
	words := strings.FieldsFunc(strings.Join(spec.Command, " "), func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'`$/", r) })
	if hint := homeHint(spec, h, words); hint != "" {
		s.say("hint", cyan, hint)
	}
}

// homeHint is the hint for the first of these programs that is in the caller's home, and not shown;
// empty: none is.
func homeHint(spec agent.Spec, h host.Host, programs []string) string {
	for _, program := range programs {
		folders := homeTool(h, program)
		first, _, _ := strings.Cut(folders, ",")
		shown := slices.ContainsFunc(spec.Files.Binds, func(b agent.Bind) bool { return b.Target == spec.User.Home+"/"+first })
		if folders != "" && !shown {
			return program + " is in your home, which is not inside: --" + settings.HomeDir + " " + folders + " shows it"
		}
	}
	return ""
}

// homeTool is the value of the flag that shows a program of the caller's home; empty: none does. A link
// to another place would lead nowhere inside.
func homeTool(h host.Host, program string) string {
	given, _ := h.Lookup("HOME")
	home, err := filepath.EvalSymlinks(given)
	if err != nil || !filepath.IsAbs(given) || strings.Contains(program, "/") {
		return ""
	}
	path, _ := h.Lookup("PATH")
	dirs := slices.Clone(interpreter.HomeDirs)
	for _, dir := range filepath.SplitList(path) {
		if rel, err := filepath.Rel(given, dir); err == nil && filepath.IsLocal(rel) && rel != "." {
			dirs = append(dirs, rel)
		}
	}
	for _, dir := range dirs {
		at := filepath.Join(home, dir, program)
		real, err := filepath.EvalSymlinks(at)
		if err != nil || filepath.Dir(real) != filepath.Dir(at) || !host.IsProgram(real) {
			continue
		}
		// The tool's own folder beside its bin, if nothing in it must stay outside.
		if own := filepath.Dir(dir); filepath.Base(dir) == "bin" && own != "." && own != ".local" && homedir.Check(filepath.Join(home, own), own) == nil {
			dir = own
		}
		if dir == ".cargo" && host.IsDirectory(filepath.Join(home, ".rustup")) {
			dir += ",.rustup" // rustup's programs only start those of a toolchain
		}
		return dir
	}
	return ""
}

// reportHomeCopied says that what the agent changes in its home is not kept.
func (p launcher) reportHomeCopied(name string) {
	p.say("clove", cyan, "another run has the kept home "+name+": this one has a copy, which is not kept")
}
