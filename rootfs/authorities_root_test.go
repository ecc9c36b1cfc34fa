//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trusting is a small root with files of authorities, in which the authority of a run is to be trusted.
func (b *bench) trusting(files map[string]string) Config {
	cfg := b.smallRoot(files)
	cfg.Services, cfg.Authority = b.mkdir("services", map[string]string{AuthorityFile: "THE RUN'S\n"}), true
	return cfg
}

// Each file of authorities that a root has shows the root's own and the run's, under each of its names, read-only. One that the root does not
// have is not made. The control is the same root without the authority.
func TestTheAuthorityIsInEachFileOfAuthorities(t *testing.T) {
	b := newBench(t)
	cfg := b.trusting(map[string]string{"etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem": "THE ROOT'S", "etc/ssl/certs/ca-certificates.crt": "THE ROOT'S"})
	for name, link := range map[string]string{
		"etc/pki/tls/certs/ca-bundle.crt": "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"etc/ssl/cert.pem":                "certs/ca-certificates.crt",
	} {
		b.mkdir(filepath.Dir("rootfs/"+name), nil)
		if err := os.Symlink(link, filepath.Join(cfg.Rootfs, name)); err != nil {
			t.Fatal(err)
		}
	}
	const read = "cd /etc; for f in ssl/certs/ca-certificates.crt ssl/cert.pem pki/tls/certs/ca-bundle.crt pki/ca-trust/extracted/pem/tls-ca-bundle.pem; do cat $f; echo; done; ls /etc/ssl"
	tree := b.mount(cfg)
	want := strings.Repeat("THE ROOT'S\nTHE RUN'S\n\n", 4) + "cert.pem\ncerts\n"
	if got := b.must(tree, sandboxAgent, read); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := b.must(tree, sandboxAgent, "cat "+ServicesDir+"/"+BundleFile); got != "THE ROOT'S\nTHE RUN'S\n" {
		t.Errorf("%q", got)
	}
	b.refused(tree, sandboxRoot, "echo x >>/etc/ssl/cert.pem", "cannot create")
	for _, name := range []string{"etc/ssl/certs/ca-certificates.crt", "etc/ssl/cert.pem"} {
		if text, err := os.ReadFile(filepath.Join(cfg.Rootfs, name)); err != nil || string(text) != "THE ROOT'S" {
			t.Errorf("the root's own is %q, %v", text, err)
		}
	}
	cfg.ID, cfg.RunDir, cfg.Authority = "control", b.mkdir("run2", nil), false
	if got := b.must(b.mount(cfg), sandboxAgent, read); got != strings.Repeat("THE ROOT'S\n", 4)+"cert.pem\ncerts\n" {
		t.Errorf("control: %q", got)
	}
}

// A root without such a file is started: programs are led to the run's authority alone.
func TestARootWithoutAuthorities(t *testing.T) {
	b := newBench(t)
	tree := b.mount(b.trusting(map[string]string{"etc/ssl/certs/ca-certificates.crt/x": "a directory"}))
	if got := b.must(tree, sandboxAgent, "cat "+ServicesDir+"/"+BundleFile); got != "THE RUN'S\n" {
		t.Errorf("%q", got)
	}
}

// A file of authorities that leads out of the root, to a file that the agent may not read, or to none of a kind that has certificates, is
// not shown, and nothing of the host is covered. The control: outside of the root a link leads there.
func TestAFileOfAuthoritiesLeadsNowhereElse(t *testing.T) {
	b := newBench(t)
	outside := b.mkdir("outside", map[string]string{"key": "SECRET\n"})
	closed := b.mkdir("closed", map[string]string{"key": "SECRET\n"})
	own(t, filepath.Join(closed, "key"), 0, 0o600)
	cfg := b.trusting(map[string]string{"etc/pki/tls/cacert.pem": "THE ROOT'S"})
	cfg.Binds = []Bind{{Source: closed, Target: "/closed", ReadOnly: true}}
	own(t, closed, bindUser, 0o755) // which is the agent, inside
	for name, link := range map[string]string{
		"etc/ssl/certs/ca-certificates.crt": filepath.Join(outside, "key"),
		"etc/pki/tls/certs/ca-bundle.crt":   "../../../../../../../../../.." + outside + "/key",
		"etc/ssl/ca-bundle.pem":             "/closed/key",
		"etc/pki/tls/cert.pem":              "/dev/zero",
	} {
		b.mkdir(filepath.Dir("rootfs/"+name), nil)
		if err := os.Symlink(link, filepath.Join(cfg.Rootfs, name)); err != nil {
			t.Fatal(err)
		}
	}
	tree := b.mount(cfg)
	if got := b.must(tree, sandboxAgent, "cat "+ServicesDir+"/"+BundleFile); got != "THE ROOT'S\nTHE RUN'S\n" {
		t.Errorf("%q", got)
	}
	b.refused(tree, sandboxAgent, "cat /closed/key", "Permission denied")
	for _, dir := range []string{outside, closed} {
		if text, err := os.ReadFile(filepath.Join(dir, "key")); err != nil || string(text) != "SECRET\n" {
			t.Errorf("the host's file is %q, %v", text, err)
		}
		if mounts := mountsBelow(t, dir); len(mounts) > 0 {
			t.Errorf("mounted outside: %q", mounts)
		}
	}
	if text, err := os.ReadFile(filepath.Join(cfg.Rootfs, "etc/pki/tls/certs/ca-bundle.crt")); err != nil || string(text) != "SECRET\n" {
		t.Errorf("control: outside of the root the link reads %q, %v", text, err)
	}
}
