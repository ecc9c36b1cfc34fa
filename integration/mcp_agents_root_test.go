//go:build root

package integration

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program starts the agents that its user has by name, in sandboxes that end with it. Another run of the same
// user is out of its reach, and no agent sees a folder that the server was not given: the control is a server
// that was.
func TestAProgramOfAPersonStartsAgents(t *testing.T) {
	d := newClovedFor(t, groupName)
	home := ownedFolder(t, memberUID)
	project, agents := filepath.Join(home, "project"), filepath.Join(home, ".config/clove/agents")
	mustDo(t, errors.Join(os.MkdirAll(project, 0o755), os.MkdirAll(agents, 0o755), os.WriteFile(filepath.Join(project, "a.txt"), []byte("x"), 0o644)))
	for name, rest := range map[string]string{
		"hello":  `command: [sh, -c, 'echo "hello, $1"', sh]`,
		"slow":   `command: [sleep, "1000"]`,
		"parrot": "model: echo",
	} {
		mustDo(t, os.WriteFile(filepath.Join(agents, name+".yaml"), []byte("version: 1\nname: "+name+"\ndescription: is tried\n"+rest+"\n"), 0o644))
	}
	mustDo(t, filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, memberUID, memberUID))
	}))
	if r := d.as(memberUID, []uint32{groupID}, "run", "-d", "--name", "other", "--", "sleep", "1000"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	p := d.mcpAs(memberUID, home, project)
	if text := p.good("list_agents", nil); !strings.Contains(text, "hello: is tried\n") || strings.Contains(text, "other") {
		t.Errorf("%s", text)
	}
	if text := p.good("ask_agent", map[string]any{"agent": "hello", "prompt": "$(id) world"}); !strings.HasPrefix(text, "hello, $(id) world\n") {
		t.Errorf("%q", text)
	}
	name, _, _ := strings.Cut(p.good("spawn_agent", map[string]any{"agent": "slow"}), " ")
	if text := p.good("kill_agent", map[string]any{"agent": name}); text != name+" was ended.\n" {
		t.Errorf("%q", text)
	}
	p.good("spawn_agent", map[string]any{"agent": "slow"})
	for _, tool := range []string{"kill_agent", "ask_agent"} {
		if text, failed := p.tool(tool, map[string]any{"agent": "other"}); !failed {
			t.Errorf("%s of another run: %s", tool, text)
		}
	}
	if text, failed := p.tool("ask_agent", map[string]any{"agent": "parrot", "prompt": "say it"}); !failed || !strings.Contains(text, "--workspace") {
		t.Errorf("an agent got a folder: %s", text)
	}
	if live := d.ok("ps", "-q"); strings.Count(live, "\n") != 2 {
		t.Errorf("control: %q live, want the slow agent and the other run", live)
	}
	mustDo(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	until(t, "only the other run is left", func() bool { return strings.Count(d.ok("ps", "-a", "-q"), "\n") == 1 })
	p = d.mcpAs(memberUID, home, project, "--workspace", ".")
	if text := p.good("ask_agent", map[string]any{"agent": "parrot", "prompt": "say it"}); !strings.HasPrefix(text, "say it\n") || !strings.Contains(text, "a copy of "+project) {
		t.Errorf("control: %q", text)
	}
	mustDo(t, p.input.Close())
	mustDo(t, p.cmd.Wait())
}
