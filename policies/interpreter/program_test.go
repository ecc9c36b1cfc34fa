package interpreter

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// Each way in which an installer puts a program into a home shows that program, and nothing beside it.
func TestProgramsOfAHome(t *testing.T) {
	elfFile := elfHeader(byte(elf.ELFCLASS64), uint16(elf.EM_X86_64))
	for name, c := range map[string]struct {
		make    func(b tree)
		command string   // inside
		shows   []string // below the tree
		bin     string
	}{
		"a single file behind a link": {func(b tree) {
			b.file("home/.local/share/tool/versions/1.2", elfFile, 0o755)
			b.link(b.dir+"/home/.local/share/tool/versions/1.2", "home/.local/bin/tool")
		}, "/opt/clove/program/1.2", []string{"home/.local/share/tool/versions/1.2"}, ""},
		"npm's prefix": {func(b tree) {
			b.file("home/.npmrc", "prefix=${HOME}/npm\n", 0o644)
			b.file("home/npm/lib/node_modules/@a/tool/bin/tool.js", "#!/usr/bin/env node\n", 0o755)
			b.file("home/npm/lib/node_modules/secret/x", "", 0o644)
			b.link("../lib/node_modules/@a/tool/bin/tool.js", "home/npm/bin/tool")
		}, "BASE/bin/node /opt/clove/program/tool/bin/tool.js", []string{"home/npm/lib/node_modules/@a/tool"}, ""},
		"nvm, the newest version": {func(b tree) {
			for _, v := range []string{"v9.1.0", "v22.3.0"} {
				b.file("home/.nvm/versions/node/"+v+"/bin/node", elfFile, 0o755)
				b.file("home/.nvm/versions/node/"+v+"/lib/node_modules/tool/tool.js", "#!/usr/bin/env node\n", 0o755)
				b.link("../lib/node_modules/tool/tool.js", "home/.nvm/versions/node/"+v+"/bin/tool")
			}
		}, "/opt/clove/interpreter/v22.3.0/bin/node /opt/clove/interpreter/v22.3.0/lib/node_modules/tool/tool.js", []string{"home/.nvm/versions/node/v22.3.0"}, "/opt/clove/interpreter/v22.3.0/bin"},
		"packages beside one another": {func(b tree) {
			b.file("home/.bun/install/global/node_modules/tool/tool", elfFile, 0o755)
			b.link("../install/global/node_modules/tool/tool", "home/.bun/bin/tool")
		}, "/opt/clove/program/node_modules/tool/tool", []string{"home/.bun/install/global/node_modules"}, ""},
		"a virtual environment": {func(b tree) {
			b.file("home/.local/pipx/venvs/tool/pyvenv.cfg", "home = "+b.dir+"/base/bin\n", 0o644)
			b.link(b.dir+"/base/bin/python3", "home/.local/pipx/venvs/tool/bin/python")
			b.file("home/.local/pipx/venvs/tool/bin/tool", "#!"+b.dir+"/home/.local/pipx/venvs/tool/bin/python\n", 0o755)
			b.link("../pipx/venvs/tool/bin/tool", "home/.local/bin/tool")
		}, "/opt/clove/interpreter/tool/bin/python /opt/clove/interpreter/tool/bin/tool", []string{"home/.local/pipx/venvs/tool"}, "/opt/clove/interpreter/tool/bin"},
		"the base system":              {func(b tree) { b.file("base/bin/tool", elfFile, 0o755) }, "BASE/bin/tool", nil, ""},
		"a script that starts another": {func(b tree) { b.file("home/bin/tool", "#!/bin/sh\nexec something\n", 0o755) }, "", nil, ""},
		"a line that names a project": {func(b tree) {
			b.file("home/project/lib/secret", "", 0o644)
			b.file("home/project/bin/node", elfFile, 0o755)
			b.file("home/.bun/install/global/node_modules/tool/tool.js", "#!"+b.dir+"/home/project/bin/node\n", 0o755)
			b.link("../install/global/node_modules/tool/tool.js", "home/.bun/bin/tool")
		}, "", nil, ""},
		"a line that names a program of a project in PATH": {func(b tree) {
			b.file("home/project/lib/secret", "", 0o644)
			b.file("home/project/bin/rails", elfFile, 0o755)
			b.file("home/.bun/install/global/node_modules/tool/tool.js", "#!/usr/bin/env rails\n", 0o755)
			b.link("../install/global/node_modules/tool/tool.js", "home/.bun/bin/tool")
		}, "", nil, ""},
		"a program of another machine":  {func(b tree) { b.file("home/bin/tool", elfHeader(byte(elf.ELFCLASS64), uint16(elf.EM_AARCH64)), 0o755) }, "", nil, ""},
		"a launcher of another program": {func(b tree) { b.file("home/bin/mise", elfFile, 0o755); b.link("mise", "home/bin/tool") }, "", nil, ""},
		"nothing":                       {func(tree) {}, "", nil, ""},
	} {
		b := newTree(t)
		b.file("base/bin/python3", elfFile, 0o755)
		b.file("base/bin/node", elfFile, 0o755)
		c.make(b)
		h := host.Host{Dir: b.dir, Machine: elf.EM_X86_64, Base: []string{b.dir + "/base", "/usr", "/bin"}, Environ: []string{"HOME=" + b.dir + "/home", "PATH=" + b.dir + "/base/bin:" + b.dir + "/home/project/bin"}}
		got, err := Finder{Host: h, Dir: b.dir}.Program("tool")
		if c.command == "" {
			if err == nil || agent.FailureOf(err).Hint == "" {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			continue
		}
		var shows []string
		for _, bind := range got.Binds {
			rel, _ := filepath.Rel(b.dir, bind.Source)
			shows = append(shows, rel)
			if !bind.ReadOnly || bind.CopyOnWrite {
				t.Errorf("%s: %+v", name, bind)
			}
		}
		if command := strings.ReplaceAll(strings.Join(got.Command, " "), b.dir+"/base", "BASE"); err != nil || command != c.command || !slices.Equal(shows, c.shows) || got.Bin != c.bin {
			t.Errorf("%s: %s shows %q, bin %q, %v", name, command, shows, got.Bin, err)
		}
	}
}
