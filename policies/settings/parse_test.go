package settings

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

func TestParseUser(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(root+"/etc", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\nwww-data:x:33:34::/var/www:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nbroken:x:a:b:\nshort:x\n",
		"group":  "adm:x:4:\nnogroup:x:65534:\n",
	} {
		if err := os.WriteFile(root+"/etc/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]agent.User{
		"agent":        {Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		"1000":         {Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		"root":         {Name: "root", Home: "/root"},
		"0:0":          {Name: "root", Home: "/root"},
		"agent:root":   {Name: "agent", UID: 1000, GID: 0, Home: "/home/agent"},
		"1234":         {Name: "1234", UID: 1234, GID: 1234, Home: "/home/agent"},
		"1234:5":       {Name: "1234", UID: 1234, GID: 5, Home: "/home/agent"},
		"65532:65532":  {Name: "65532", UID: 65532, GID: 65532, Home: "/home/agent"},
		"www-data":     {Name: "www-data", UID: 33, GID: 34, Home: "/home/agent"},
		"www-data:adm": {Name: "www-data", UID: 33, GID: 4, Home: "/home/agent"},
		"toor":         {Name: "root", Home: "/root"},
		"broken":       {}, "short": {}, "adm": {}, "1:nogroup": {}, "www-data:www-data": {},
		"": {}, "65533": {}, "-1": {}, "nobody": {}, "1:": {}, ":1": {}, "1:2:3": {}, "4294967296": {}, "0x10": {},
	} {
		got, err := ParseUser(text, root)
		if refused := want == (agent.User{}); (err != nil) != refused || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// A name is looked up in the tree alone, also where a link in it leads out of it; a FIFO is not waited for.
func TestUsersOfAHostileTree(t *testing.T) {
	for _, make := range []func(path string) error{
		func(path string) error { return os.Symlink("/etc/passwd", path) },
		func(path string) error { return os.Symlink("../../../../../../../../etc/passwd", path) },
		func(path string) error { return unix.Mkfifo(path, 0o644) },
		func(path string) error { return os.Mkdir(path, 0o755) },
		func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("#\n", 1<<19)+"daemon:x:1:1::/:/bin/sh\n"), 0o644)
		},
	} {
		root := t.TempDir()
		if err := errors.Join(os.Mkdir(root+"/etc", 0o755), make(root+"/etc/passwd")); err != nil {
			t.Fatal(err)
		}
		if user, err := ParseUser("daemon", root); err == nil {
			t.Errorf("%+v", user)
		}
	}
	if user, err := ParseUser("daemon", "/"); err != nil || user.UID != 1 {
		t.Errorf("control: %+v, %v", user, err)
	}
}
