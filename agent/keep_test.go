package agent

import (
	"fmt"
	"strings"
	"testing"
)

func TestValidateKeep(t *testing.T) {
	many := make([]string, KeepMost+1)
	for i := range many {
		many[i] = fmt.Sprint("/kept/", i)
	}
	for name, row := range map[string]struct {
		change func(*Spec)
		want   string // in the error; empty: there is none
	}{
		"control":             {func(*Spec) {}, ""},
		"a place of the host": {func(s *Spec) { s.Files.Keep = []string{"/var/lib/agent", "/home/other", "/srv/a b"} }, ""},
		"the most":            {func(s *Spec) { s.Files.Keep = many[1:] }, ""},
		"no home":             {func(s *Spec) { s.Files.Home = nil }, "for an agent with a kept home only"},
		"too many":            {func(s *Spec) { s.Files.Keep = many }, "may be 16"},
		"relative":            {func(s *Spec) { s.Files.Keep = []string{"memory"} }, "not an absolute path"},
		"not clean":           {func(s *Spec) { s.Files.Keep = []string{"/memory/../etc"} }, "not an absolute path"},
		"a line break":        {func(s *Spec) { s.Files.Keep = []string{"/a\nb"} }, "on one line"},
		"too long":            {func(s *Spec) { s.Files.Keep = []string{"/" + strings.Repeat("x", pathMost)} }, "bytes"},
		"the root":            {func(s *Spec) { s.Files.Keep = []string{"/"} }, "the whole root"},
		"processes":           {func(s *Spec) { s.Files.Keep = []string{"/proc/self"} }, "in /proc"},
		"devices":             {func(s *Spec) { s.Files.Keep = []string{"/dev"} }, "something else is there"},
		"the kernel's":        {func(s *Spec) { s.Files.Keep = []string{"/sys/fs"} }, "in /sys"},
		"the base":            {func(s *Spec) { s.Files.Keep = []string{"/etc/agent"} }, "in /etc"},
		"its socket":          {func(s *Spec) { s.Files.Keep = []string{"/run"} }, "/run/clove is in it"},
		"the workspace":       {func(s *Spec) { s.Files.Keep = []string{"/workspace/memory"} }, "in /workspace"},
		"the home":            {func(s *Spec) { s.Files.Keep = []string{HomeDir} }, "something else is there"},
		"above the home":      {func(s *Spec) { s.Files.Keep = []string{"/home"} }, HomeDir + " is in it"},
		"in a volume":         {func(s *Spec) { s.Files.Binds = []Bind{{Source: "/x", Target: "/memory"}} }, "something else is there"},
		"above memory":        {func(s *Spec) { s.Files.Tmpfs = []Tmpfs{{Target: "/memory/t"}} }, "/memory/t is in it"},
		"an interpreter":      {func(s *Spec) { s.Files.Prefixes = []string{"/memory/py"} }, "/memory/py is in it"},
		"twice":               {func(s *Spec) { s.Files.Keep = []string{"/memory", "/memory"} }, "something else is there"},
		"in another":          {func(s *Spec) { s.Files.Keep = []string{"/memory", "/memory/b"} }, "in /memory"},
	} {
		s := Spec{User: User{Home: HomeDir}, Files: Files{Home: &Home{Name: "mine", Folder: "/project"}, Keep: []string{"/memory"}}}
		row.change(&s)
		err := s.ValidateKeep()
		if (err == nil) != (row.want == "") || err != nil && (!strings.Contains(err.Error(), row.want) || FailureOf(err).Hint == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A kept folder is the agent's own, so a list of what may be read does not keep it from the agent.
func TestAKeptFolderIsReadable(t *testing.T) {
	f := Files{Read: []string{"/usr"}, Keep: []string{"/memory"}}
	if !f.MayRead("/memory/x") || f.MayRead("/memories") {
		t.Error(f.OwnPlaces())
	}
}
