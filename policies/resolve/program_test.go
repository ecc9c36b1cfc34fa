package resolve

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// What a sandbox has installed cannot lead to a file of the host. The control: a link that stays in the
// folder is the program.
func TestInstalledLinkOut(t *testing.T) {
	dir := t.TempDir()
	installed := dir + "/data/clove/programs/tool@1.0.0"
	at := filepath.Join(installed, "node_modules/.bin/tool")
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(dir+"/secret", program[:64], 0o755), os.WriteFile(installed+"/tool", program[:64], 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	head := elf.EM_X86_64
	if f, err := elf.Open("/proc/self/exe"); err == nil {
		head = f.Machine
		f.Close()
	}
	h := host.Host{Dir: dir, Machine: head, Environ: []string{"HOME=" + dir + "/home", "XDG_DATA_HOME=" + dir + "/data", "PATH=/nowhere"}}
	m := Manifest{Written: policies.Manifest{ManifestHead: policies.ManifestHead{Task: policies.Task{Program: "tool", Install: "npm:tool@1.0.0"}}}}
	if m.Installed(h) != installed {
		t.Errorf("%s", m.Installed(h))
	}
	for _, c := range []struct {
		target string
		found  bool
	}{{"../../tool", true}, {installed + "/tool", true}, {dir + "/secret", false}, {"../../../../../../secret", false}, {"absent", false}} {
		os.Remove(at)
		if err := os.Symlink(c.target, at); err != nil {
			t.Fatal(err)
		}
		got, err := FindProgram("tool", installed, h)
		if (err == nil) != c.found || err != nil && agent.KindOf(err) != agent.KindNotFound {
			t.Errorf("%s: %+v, %v", c.target, got, err)
		}
	}
}

// A home is the workspace of an agent only where it was named.
func TestShowFolder(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home/project", "other/.ssh", "plain"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, shown := range map[string]bool{"home/project": true, "plain": true, "home": false, "": false, "other": false} {
		var r Request
		err := r.ShowFolder(host.Host{Dir: filepath.Join(dir, name), Environ: []string{"HOME=" + dir + "/home"}})
		if (err == nil) != shown || shown != (r.Text(settings.Workspace) == ".") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
