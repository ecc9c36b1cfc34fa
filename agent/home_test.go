package agent

import "testing"

func TestValidateHome(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Spec){
		"control":            nil,
		"a path as the name": func(s *Spec) { s.Files.Home.Name = "../x" },
		"no folder":          func(s *Spec) { s.Files.Home.Folder = "" },
		"another home":       func(s *Spec) { s.User.Home = "/root" },
		"read-only":          func(s *Spec) { s.Files.ReadOnly, s.Files.Writable = true, []string{"/tmp"} },
		"a bind there":       func(s *Spec) { s.Files.Binds = []Bind{{Source: "/x", Target: HomeDir}} },
		"memory there":       func(s *Spec) { s.Files.Tmpfs = []Tmpfs{{Target: HomeDir}} },
	} {
		s := Spec{User: User{Home: HomeDir}, Files: Files{Home: &Home{Name: "mine", Folder: "/project"}}}
		if change != nil {
			change(&s)
		}
		if err := s.ValidateHome(); (err == nil) != (name == "control") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
