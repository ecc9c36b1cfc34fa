package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// place is a node: a program, and a directory for the configuration.
type place struct {
	t        *testing.T
	config   string
	handler  Handler
	restarts []string // the content of the file at each restart
	fail     error    // of the next restart
}

func newPlace(t *testing.T) *place {
	dir := t.TempDir()
	p := &place{t: t, config: filepath.Join(dir, "etc", "config.toml"), handler: Handler{Name: "clove", Binary: filepath.Join(dir, "clove-oci")}}
	if err := os.WriteFile(p.handler.Binary, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) put(text string) {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.config), 0o755), os.WriteFile(p.config, []byte(text), 0o640)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) containerd() Containerd {
	return Containerd{Config: p.config, Restart: func(context.Context) error {
		text, _ := os.ReadFile(p.config) // an absent file reads as empty
		p.restarts = append(p.restarts, string(text))
		err := p.fail
		p.fail = nil
		return err
	}}
}

func (p *place) install() Result {
	p.t.Helper()
	result, err := Install(p.t.Context(), p.containerd(), p.handler)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

func (p *place) uninstall() Result {
	p.t.Helper()
	result, err := Uninstall(p.t.Context(), p.containerd())
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// files returns the names beside the configuration, which were left there.
func (p *place) files() string {
	p.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(p.config))
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func TestInstallTwiceAndUninstallTwice(t *testing.T) {
	p := newPlace(t)
	text := readFile(t, "testdata/default-1.6.toml")
	p.put(text)
	if r := p.install(); !r.Changed || !r.Restarted || r.Config != p.config {
		t.Errorf("%+v", r)
	}
	if r := p.install(); r.Changed || r.Restarted {
		t.Errorf("the second time: %+v", r)
	}
	if len(p.restarts) != 1 || !strings.Contains(p.restarts[0], p.handler.Binary) {
		t.Errorf("containerd was restarted %d times", len(p.restarts))
	}
	if readFile(t, p.config+backupSuffix) != text || p.files() != "config.toml config.toml.before-clove" {
		t.Errorf("beside it: %s", p.files())
	}
	if info, err := os.Stat(p.config); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if r := p.uninstall(); !r.Changed || readFile(t, p.config) != text || p.files() != "config.toml" {
		t.Errorf("%+v, beside it: %s", r, p.files())
	}
	if r := p.uninstall(); r.Changed || len(p.restarts) != 2 {
		t.Errorf("the second time: %+v, %d restarts", r, len(p.restarts))
	}
}

func TestANodeWithoutAFile(t *testing.T) {
	p := newPlace(t)
	if r := p.uninstall(); r.Changed {
		t.Errorf("%+v", r)
	}
	if r := p.install(); !r.Changed || p.files() != "config.toml" {
		t.Errorf("%+v: %s", r, p.files())
	}
	if r := p.uninstall(); !r.Changed || p.files() != "" {
		t.Errorf("%+v: %s", r, p.files())
	}
	p.put("")
	p.install()
	if p.uninstall(); p.files() != "config.toml" {
		t.Errorf("an empty file was there: %s", p.files())
	}
}

// TestWhatWasWrittenMeanwhileStays: uninstall removes the block, and nothing that an
// administrator wrote since; then the backup stays beside it.
func TestWhatWasWrittenMeanwhileStays(t *testing.T) {
	p := newPlace(t)
	p.put(minimal3)
	p.install()
	p.put(readFile(t, p.config) + "[debug]\nlevel = 'debug'\n")
	p.install()
	p.uninstall()
	if got := readFile(t, p.config); got != minimal3+"[debug]\nlevel = 'debug'\n" {
		t.Errorf("%q", got)
	}
	if readFile(t, p.config+backupSuffix) != minimal3 {
		t.Error("the backup is another one")
	}
}

func TestALinkStaysALink(t *testing.T) {
	p := newPlace(t)
	p.put(minimal2)
	link := p.config + ".link"
	if err := os.Symlink("config.toml", link); err != nil {
		t.Fatal(err)
	}
	if r, err := Install(t.Context(), Containerd{Config: link}, p.handler); err != nil || r.Config != p.config || r.Restarted {
		t.Errorf("%+v, %v", r, err)
	}
	if to, err := os.Readlink(link); err != nil || to != "config.toml" || !strings.Contains(readFile(t, p.config), "BEGIN clove") {
		t.Errorf("%q, %v", to, err)
	}
}

// TestAContainerdThatDoesNotComeUpGetsItsOldFile: at install and at uninstall.
func TestAContainerdThatDoesNotComeUpGetsItsOldFile(t *testing.T) {
	for _, text := range []string{minimal2, ""} {
		p := newPlace(t)
		if text != "" {
			p.put(text)
		}
		p.fail = errors.New("exit status 1")
		r, err := Install(t.Context(), p.containerd(), p.handler)
		if err == nil || !strings.Contains(err.Error(), "exit status 1") || r.Changed {
			t.Errorf("%+v, %v", r, err)
		}
		if len(p.restarts) != 2 || p.restarts[1] != text || strings.Contains(p.files(), backupSuffix) {
			t.Errorf("containerd's files were %q; beside it: %s", p.restarts, p.files())
		}
	}
	p := newPlace(t)
	p.put(minimal2)
	p.install()
	with := readFile(t, p.config)
	p.fail = errors.New("exit status 1")
	if _, err := Uninstall(t.Context(), p.containerd()); err == nil || readFile(t, p.config) != with || p.files() != "config.toml config.toml.before-clove" {
		t.Errorf("%v, %s", err, p.files())
	}
}

func TestARefusalChangesNothing(t *testing.T) {
	p := newPlace(t)
	p.put("version = 1\n")
	if _, err := Install(t.Context(), p.containerd(), p.handler); err == nil || p.files() != "config.toml" || len(p.restarts) != 0 {
		t.Errorf("%v, %s", err, p.files())
	}
	p.put(minimal2)
	plain := filepath.Join(filepath.Dir(p.handler.Binary), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, binary := range []string{"", "clove-oci", p.handler.Binary + "x", filepath.Dir(p.handler.Binary), plain} {
		if _, err := Install(t.Context(), p.containerd(), Handler{Name: "clove", Binary: binary}); err == nil || readFile(t, p.config) != minimal2 {
			t.Errorf("%q is a runtime: %v", binary, err)
		}
	}
	p.config = filepath.Join(p.config, "beneath")
	if _, err := Install(t.Context(), p.containerd(), p.handler); err == nil {
		t.Error("there is a file below a file")
	}
}

// TestImportsThatReplaceTheHandler: before 2.0, the last file that configures the CRI plugin
// replaces all others.
func TestImportsThatReplaceTheHandler(t *testing.T) {
	const snippet = "[plugins.\"" + oneX + "\".cni]\nbin_dir = '/usr/lib/cni'\n"
	for name, row := range map[string]struct {
		config, imported string
		refused          bool
	}{
		"another plugin":  {"version = 2\nimports = ['conf.d/*.toml']\n", "version = 2\n[debug]\nlevel = 'debug'\n", false},
		"the CRI":         {"version = 2\nimports = ['conf.d/*.toml']\n", snippet, true},
		"not TOML":        {"version = 2\nimports = ['conf.d/*.toml']\n", "=", true},
		"nothing there":   {"version = 2\nimports = ['other.d/*.toml']\n", snippet, false},
		"a bad pattern":   {"version = 2\nimports = ['conf.d/[']\n", snippet, true},
		"containerd 2.0":  {"version = 3\nimports = ['conf.d/*.toml']\n", snippet, false},
		"without imports": {"version = 2\n", snippet, false},
	} {
		p := newPlace(t)
		p.put(row.config)
		conf := filepath.Join(filepath.Dir(p.config), "conf.d")
		if err := errors.Join(os.Mkdir(conf, 0o755), os.WriteFile(filepath.Join(conf, "a.toml"), []byte(row.imported), 0o644)); err != nil {
			t.Fatal(err)
		}
		_, err := Install(t.Context(), p.containerd(), p.handler)
		if (err != nil) != row.refused {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && readFile(t, p.config) != row.config {
			t.Errorf("%s: the file changed", name)
		}
	}
}

// TestCgroupsAsAnImportHasThem: from 2.0 on imports are merged, and take precedence over the
// file itself, also with the names of version 2.
func TestCgroupsAsAnImportHasThem(t *testing.T) {
	for name, row := range map[string]struct{ imported, want string }{
		"version 3":       {"version = 3\n[plugins.'" + twoX + "'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n", "SystemdCgroup = true"},
		"version 2":       {"version = 2\n[plugins.'" + oneX + "'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n", "SystemdCgroup = true"},
		"no version":      {"[plugins.'" + twoX + "'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n", "SystemdCgroup = true"},
		"another handler": {"version = 3\n[plugins.'" + twoX + "'.containerd.runtimes.other.options]\nSystemdCgroup = true\n", "SystemdCgroup = false"},
	} {
		p := newPlace(t)
		p.put("version = 3\nimports = ['a.toml']\n[plugins.'" + twoX + "'.containerd.runtimes.runc.options]\nSystemdCgroup = false\n")
		if err := os.WriteFile(filepath.Join(filepath.Dir(p.config), "a.toml"), []byte(row.imported), 0o644); err != nil {
			t.Fatal(err)
		}
		p.install()
		if r := p.install(); r.Changed {
			t.Errorf("%s: changed again", name)
		}
		_, block, _ := strings.Cut(readFile(t, p.config), "BEGIN clove")
		if !strings.Contains(block, row.want) {
			t.Errorf("%s: the block is%s", name, block)
		}
	}
}
