//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder copied into the home: the agent reads and changes it, the host's stays, and the
// directories on the way are the agent's. A place that could not be written is only shown.
func TestACopiedFolder(t *testing.T) {
	b := newBench(t)
	dir := b.mkdir("uv", map[string]string{"mine": "mine\n", "closed/secret": "SECRET\n"})
	own(t, dir, bindUser, 0o755)
	own(t, filepath.Join(dir, "mine"), bindUser, 0o600)
	own(t, filepath.Join(dir, "closed"), 0, 0o700)
	at := agentHome + "/.cache/uv"
	folder := Bind{Source: dir, Target: at, ReadOnly: true, CopyOnWrite: true}
	tree := b.mount(userConfig(b, folder))
	b.must(tree, sandboxAgent, "cat "+at+"/mine && echo new >"+at+"/mine && touch "+at+"/more "+agentHome+"/.cache/own")
	for _, uid := range []uint32{sandboxAgent, sandboxRoot} { // the caller's rights, not root's
		b.refused(tree, uid, "cat "+at+"/closed/secret", "Permission denied")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "mine")); err != nil || string(text) != "mine\n" {
		t.Errorf("the host's file is %q, %v", text, err)
	}
	control := testConfig(b.dir)
	control.ID, control.RunDir, control.Binds = "control", b.mkdir("run2", nil), []Bind{folder}
	b.must(b.mount(control), sandboxRoot, "cat "+at+"/closed/secret")

	sealed := userConfig(b, folder)
	sealed.ID, sealed.RunDir, sealed.ReadOnly, sealed.Writable = "sealed", b.mkdir("run3", nil), true, []string{"/tmp"}
	b.refused(b.mount(sealed), sandboxAgent, "echo x >"+at+"/mine", "Read-only file system")
}

// A link that takes a folder's place leads nowhere, with root's rights too, and a folder with
// credentials is refused without leave. The controls: a volume follows the link, and with leave
// the folder is shown.
func TestACopiedFolderLeadsNowhereElse(t *testing.T) {
	b := newBench(t)
	home := b.mkdir("home", map[string]string{"tools/credentials.toml": ""})
	secret := b.mkdir("secret", map[string]string{"key": "SECRET\n"})
	if err := os.Symlink(secret, filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bind Bind
		want string
	}{
		"a link":              {Bind{Source: home + "/link"}, "leads to"},
		"credentials":         {Bind{Source: home + "/tools"}, "credentials.toml"},
		"the place":           {Bind{Source: home, Target: agentHome + "/.ssh"}, "credentials"},
		"a file":              {Bind{Source: home + "/tools/credentials.toml"}, "not a directory"},
		"control: the volume": {Bind{Source: home + "/link", Target: "/data"}, ""},
		"control: with leave": {Bind{Source: home + "/tools", Secrets: true}, ""},
	} {
		cfg := testConfig(b.dir)
		c.bind.ReadOnly, c.bind.CopyOnWrite = true, c.bind.Target != "/data"
		if c.bind.Target == "" {
			c.bind.Target = agentHome + "/tools"
		}
		cfg.Binds = []Bind{c.bind}
		_, err := NewPlan(cfg)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Replaced behind the plan: the mounting follows no link either.
	cfg := testConfig(b.dir)
	cfg.Binds = []Bind{{Source: home + "/tools", Target: agentHome + "/tools", ReadOnly: true, CopyOnWrite: true, Secrets: true}}
	plan, err := NewPlan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(home + "/tools"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, home+"/tools"); err != nil {
		t.Fatal(err)
	}
	b.do(func() error {
		tree, err := plan.Mount()
		if err == nil {
			err = tree.Discard()
			t.Errorf("it was mounted, %v", err)
		}
		return nil
	})
}
