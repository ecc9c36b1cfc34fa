package resolve

import (
	"testing"

	"clove.run/clove/policies/host"
)

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
