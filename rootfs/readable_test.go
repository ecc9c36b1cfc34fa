package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script is executable, and its interpreter is elsewhere.
const script = "#!/opt/clove-test/interpreter\n"

// readableRoot is a root of the caller's own: /bin/tool, /bin/script, and links.
func readableRoot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"srv/bin/tool": "text", "srv/bin/script": script, "opt/clove-test/interpreter": "text", "data/file": "text", "data/sub/file": "text"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("sub", filepath.Join(dir, "data/link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReadable(t *testing.T) {
	t.Parallel()
	dir := readableRoot(t)
	for name, row := range map[string]struct {
		list    []string
		command string
		sealed  bool
		want    []string
		problem string // empty: none
	}{
		"folders and files":        {list: []string{"/srv", "/data/file"}, want: []string{"/srv", "/data/file"}},
		"what is not there":        {list: []string{"/data/nosuch"}, problem: "does not exist inside"},
		"beneath a file":           {list: []string{"/data/file/x"}, problem: "does not exist inside"},
		"a link that is changed":   {list: []string{"/data/link"}, problem: "a link leads from there to /data/sub"},
		"beneath it":               {list: []string{"/data/link/file"}, problem: "a link leads from there to /data/sub/file"},
		"a link that stays":        {list: []string{"/data/link"}, sealed: true, want: []string{"/data/sub"}},
		"the kernel's":             {list: []string{"/sys/fs/cgroup"}, want: []string{"/sys/fs/cgroup"}},
		"own places":               {list: []string{"/tmp"}, want: []string{"/tmp"}},
		"with the program":         {list: []string{"/srv"}, command: "tool", want: []string{"/srv"}},
		"without it":               {list: []string{"/data"}, command: "tool", problem: "/srv/bin/tool: it is the agent's program"},
		"without its folder":       {list: []string{"/data"}, command: "/srv/bin/tool", problem: "/srv/bin/tool: it is the agent's program"},
		"a program that is not":    {list: []string{"/data"}, command: "nosuch", want: []string{"/data"}},
		"without the interpreter":  {list: []string{"/srv"}, command: "script", problem: "/opt/clove-test/interpreter: /srv/bin/script is a script for it"},
		"with the interpreter":     {list: []string{"/srv", "/opt"}, command: "script", want: []string{"/srv", "/opt"}},
		"an interpreter by itself": {list: []string{"/srv", "/opt/clove-test/interpreter"}, command: "script", want: []string{"/srv", "/opt/clove-test/interpreter"}},
	} {
		plan, err := NewPlan(Config{ID: "r", HostID: 65536, AgentUID: 1000, AgentGID: 1000, DiskBytes: MinDiskBytes, MemoryBytes: 1 << 20, StateDir: "/state", RunDir: "/run/r",
			Rootfs: dir, ReadOnly: row.sealed, Command: Command{Name: row.command, Dir: "/", Path: []string{"/nowhere", "/srv/bin"}}})
		if err != nil {
			t.Fatal(err)
		}
		found, err := plan.Readable(row.list, []string{"/tmp"})
		if row.problem == "" {
			if err != nil || !slices.Equal(found, row.want) {
				t.Errorf("%s: %q, %v", name, found, err)
			}
			continue
		}
		var known *ListError
		if !errors.As(err, &known) || !strings.Contains(err.Error(), row.problem) || known.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The files of a list of programs and of an interpreter must be readable as well.
func TestReadableHasWhatIsExecuted(t *testing.T) {
	t.Parallel()
	f := hostInfo{Rootfs: source{Path: readableRoot(t), Dir: true}, Prefixes: []source{{Path: "/home/u/.venv", Dir: true}}}
	cfg := Config{ID: "r", HostID: 65536, DiskBytes: MinDiskBytes, StateDir: "/state", RunDir: "/run/r", Rootfs: f.Rootfs.Path, ReadOnly: true}
	f.Execute = []executeOp{{Path: "/srv/bin/tool"}}
	for list, want := range map[string]string{"/srv": "/home/u/.venv: the agent's interpreter is there", "/data": "/srv/bin/tool: it belongs to the list of programs"} {
		if _, err := planFor(cfg, f).Readable([]string{list}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", list, err)
		}
	}
	f.Prefixes = nil
	if _, err := planFor(cfg, f).Readable([]string{"/srv"}, nil); err != nil {
		t.Errorf("control: %v", err)
	}
}
