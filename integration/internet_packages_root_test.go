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
	"slices"
	"testing"

	"clove.run/clove/internal/testhost"
)

// serveClients adds to every site what package managers and git look for.
func (n *internet) serveClients(t *testing.T) {
	t.Helper()
	wheel := wheelOfDemo(t)
	pages := map[string][]byte{
		"/simple/demo/":                    []byte(`<a href="../../files/demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>`),
		"/files/demo-1.0-py3-none-any.whl": wheel,
	}
	for path, body := range pages {
		n.web.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if path == "/simple/demo/" {
				w.Header().Set("Content-Type", "text/html")
			}
			w.Write(body)
		})
	}
	n.servePackage("demo", tarballOfDemo(t))
	if testhost.Lane() != testhost.LaneVM {
		n.web.Handle("/git/", http.StripPrefix("/git/", http.FileServer(http.Dir(repositories(t)))))
	}
}

// servePackage serves version 1.0.0 of a package, whose program NAME is NAME.js, below /npm/.
func (n *internet) servePackage(name string, content []byte) {
	n.web.HandleFunc("/files/"+name+"-1.0.0.tgz", func(w http.ResponseWriter, _ *http.Request) { w.Write(content) })
	sum := sha512.Sum512(content)
	n.web.HandleFunc("/npm/"+name, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":"%[1]s","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"%[1]s","version":"1.0.0","hasInstallScript":true,
"bin":{"%[1]s":"%[1]s.js"},"dist":{"tarball":"%[2]s://%[3]s/files/%[1]s-1.0.0.tgz","integrity":"sha512-%[4]s"}}}}`,
			name, map[bool]string{true: "https", false: "http"}[r.TLS != nil], r.Host, base64.StdEncoding.EncodeToString(sum[:]))
	})
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

// tarballOfDemo is an npm package with a program.
func tarballOfDemo(t *testing.T) []byte {
	t.Helper()
	return tarball(t, "package/package.json", `{"name":"demo","version":"1.0.0","main":"index.js","bin":{"demo":"demo.js"}}`,
		"package/demo.js", "#!/usr/bin/env node\nconsole.log('"+reached+"', ...process.argv.slice(2))\n",
		"package/index.js", "// "+reached+"\n")
}

// tarball has files of these names and texts.
func tarball(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for pair := range slices.Chunk(files, 2) {
		name, text := pair[0], pair[1]
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
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
