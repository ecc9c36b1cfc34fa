package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tools stand for the programs that build.sh calls. nfpm writes half a package, and then ends
// as the variable END says.
var tools = map[string]string{
	"bin/make":         `b=$(printf '%s\n' "$@" | sed -n 's/^BIN=//p'); mkdir -p "$b"; printf '#!/bin/sh\n' >"$b/clove"; chmod 755 "$b/clove"`,
	"bin/go":           `:`,
	"bin/git":          `exit 1`,
	"build/tools/nfpm": `while [ "$1" != --target ]; do shift; done; printf half >"$2"; eval "$END"; printf ' and half' >>"$2"`,
	"docs/clove.yaml":  ``,
	"CHANGELOG.md":     ``,
}

// tree is a folder with build.sh, what it reads, and the tools.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, text []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range tools {
		write(name, []byte("#!/bin/sh\n"+text+"\n"))
	}
	for _, name := range []string{"lib.sh", "package/build.sh", "package/cloved.8", "package/clove-oci.8", "package/clove.yaml.5.head", "package/clove.yaml.5.tail"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.Join("integration", name), text)
	}
	return dir
}

// A build that is interrupted, or fails, leaves no file under the package's name, not even an
// older one. The control is one that ends.
func TestAnInterruptedBuildLeavesNoPackage(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{"": "half and half", "kill -KILL $PPID; exit 1": "", "kill -INT $PPID; exit 1": "", "exit 1": ""} {
		dir := tree(t)
		deb := filepath.Join(dir, "out/clove_1.2.3_amd64.deb")
		if err := os.MkdirAll(filepath.Dir(deb), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(deb, []byte("older"), 0o644); err != nil {
			t.Fatal(err)
		}
		build := exec.Command("integration/package/build.sh", "1.2.3", "out")
		build.Dir = dir
		build.Env = []string{"PATH=" + dir + "/bin:" + os.Getenv("PATH"), "END=" + end}
		said, err := build.CombinedOutput()
		if (err == nil) != (want != "") {
			t.Errorf("%q: %v\n%s", end, err, said)
		}
		if text, _ := os.ReadFile(deb); string(text) != want { // absent: ""
			t.Errorf("%q: the package is %q, want %q\n%s", end, text, want, said)
		}
	}
}
