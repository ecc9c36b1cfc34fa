//go:build root

package integration

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"clove.run/clove/internal/testhost"
)

// serveClients adds to every site what package managers and git look for.
func (n *internet) serveClients(t *testing.T) {
	t.Helper()
	wheel, tarball := wheelOfDemo(t), tarballOfDemo(t)
	pages := map[string][]byte{
		"/simple/demo/":                    []byte(`<a href="../../files/demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>`),
		"/files/demo-1.0-py3-none-any.whl": wheel,
		"/files/demo-1.0.0.tgz":            tarball,
	}
	for path, body := range pages {
		n.web.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if path == "/simple/demo/" {
				w.Header().Set("Content-Type", "text/html")
			}
			w.Write(body)
		})
	}
	sum := sha512.Sum512(tarball)
	n.web.HandleFunc("/npm/demo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"demo","version":"1.0.0",
"bin":{"demo":"demo.js"},"dist":{"tarball":"%s://%s/files/demo-1.0.0.tgz","integrity":"sha512-%s"}}}}`, map[bool]string{true: "https", false: "http"}[r.TLS != nil], r.Host, base64.StdEncoding.EncodeToString(sum[:]))
	})
	if testhost.Lane() != testhost.LaneVM {
		n.web.Handle("/git/", http.StripPrefix("/git/", http.FileServer(http.Dir(repositories(t)))))
	}
}

// wheelOfDemo is a Python package, PEP 427.
func wheelOfDemo(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, file := range []struct{ name, text string }{
		{"demo.py", "print('" + reached + "')\n"},
		{"demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"},
		{"demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n"},
	} {
		part, err := w.Create(file.name)
		if err == nil {
			_, err = part.Write([]byte(file.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tarballOfDemo is an npm package.
func tarballOfDemo(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, file := range []struct{ name, text string }{
		{"package/package.json", `{"name":"demo","version":"1.0.0","main":"index.js","bin":{"demo":"demo.js"}}`},
		{"package/demo.js", "#!/usr/bin/env node\nconsole.log('" + reached + "', ...process.argv.slice(2))\n"},
		{"package/index.js", "// " + reached + "\n"},
	} {
		if err := w.WriteHeader(&tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(file.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// repositories returns a folder with one bare repository, served file by file.
func repositories(t *testing.T) string {
	t.Helper()
	git := testhost.Tool(t, "git")
	dir := t.TempDir()
	work, bare := filepath.Join(dir, "work"), filepath.Join(dir, "demo.git")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com",
			"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q", work)
	if err := os.WriteFile(filepath.Join(work, "README"), []byte(reached+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run("-C", work, "add", "README")
	run("-C", work, "commit", "-q", "-m", "Begin")
	run("clone", "-q", "--bare", work, bare)
	run("-C", bare, "update-server-info")
	return dir
}
