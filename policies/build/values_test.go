package build

import (
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

func TestParseUser(t *testing.T) {
	for text, want := range map[string]agent.User{
		"agent":       {Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		"1000":        {Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		"root":        {Name: "root", Home: "/root"},
		"0:0":         {Name: "root", Home: "/root"},
		"agent:root":  {Name: "agent", UID: 1000, GID: 0, Home: "/home/agent"},
		"1234":        {Name: "1234", UID: 1234, GID: 1234, Home: "/home/agent"},
		"1234:5":      {Name: "1234", UID: 1234, GID: 5, Home: "/home/agent"},
		"65532:65532": {Name: "65532", UID: 65532, GID: 65532, Home: "/home/agent"},
		"":            {}, "65533": {}, "-1": {}, "nobody": {}, "1:": {}, ":1": {}, "1:2:3": {}, "4294967296": {}, "0x10": {},
	} {
		got, err := ParseUser(text)
		if refused := want == (agent.User{}); (err != nil) != refused || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestSharedDirectoriesAreNoWorkspace(t *testing.T) {
	for _, dir := range []string{"/", "/tmp", "/root", "/home", "/etc", "/proc", "/proc/self", "/dev/shm", "/sys/fs"} {
		if checkWorkspace("x", dir) == nil {
			t.Errorf("%s was taken", dir)
		}
	}
	for _, dir := range []string{"/home/u", "/root/agent", "/tmp/x", "/opt/agents", "/device"} {
		if err := checkWorkspace("x", dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// A program of the system stays where it is; for an agent that was installed below /opt or
// /usr/local its directory is the workspace, as for any other.
func TestWhatIsInstalled(t *testing.T) {
	b := &builder{host: host.Host{Base: host.BaseDirs}}
	for path, want := range map[string]bool{
		"/usr/bin/env": true, "/usr/share/app/run.py": true, "/usr/local/bin/tool": true, "/opt/tool": true,
		"/usr/local/agents/a.py": false, "/opt/agents/bot/agent.py": false, "/home/u/agent.py": false, "/usrlocal/x": false,
	} {
		if got := b.isInstalled(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
